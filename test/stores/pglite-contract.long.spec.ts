import { contractSuite } from './contract-suite';

contractSuite('pglite');
