import { storeSuites } from './store-suites';

storeSuites('quorum');
