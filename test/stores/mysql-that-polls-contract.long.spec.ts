import { contractSuite } from './contract-suite';

contractSuite('mysql that polls');
