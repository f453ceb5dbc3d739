import { contractSuite } from './contract-suite';

contractSuite('redis cluster by node-redis 6');
