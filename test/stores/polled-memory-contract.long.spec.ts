import { contractSuite } from './contract-suite';

contractSuite('polled memory');
