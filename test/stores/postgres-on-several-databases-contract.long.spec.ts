import { contractSuite } from './contract-suite';

contractSuite('postgres on several databases');
