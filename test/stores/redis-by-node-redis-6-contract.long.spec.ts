import { contractSuite } from './contract-suite';

contractSuite('redis by node-redis 6');
