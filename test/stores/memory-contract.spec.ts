import { contractSuite } from './contract-suite';

contractSuite('memory');
