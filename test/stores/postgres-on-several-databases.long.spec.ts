import { storeSuites } from './store-suites';

storeSuites('postgres on several databases');
