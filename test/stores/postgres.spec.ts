import { storeSuites } from './store-suites';

storeSuites('postgres');
