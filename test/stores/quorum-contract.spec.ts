import { contractSuite } from './contract-suite';

contractSuite('quorum');
