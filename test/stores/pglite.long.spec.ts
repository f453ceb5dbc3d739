import { storeSuites } from './store-suites';

storeSuites('pglite');
