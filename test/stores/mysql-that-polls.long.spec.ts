import { storeSuites } from './store-suites';

storeSuites('mysql that polls');
