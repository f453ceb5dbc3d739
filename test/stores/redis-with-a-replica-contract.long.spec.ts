import { contractSuite } from './contract-suite';

contractSuite('redis with a replica');
