import { storeSuites } from './store-suites';

storeSuites('mysql');
