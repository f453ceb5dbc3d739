import { contractSuite } from './contract-suite';

contractSuite('postgres');
