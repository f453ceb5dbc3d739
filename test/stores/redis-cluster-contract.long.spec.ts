import { contractSuite } from './contract-suite';

contractSuite('redis cluster');
