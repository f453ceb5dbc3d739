import { storeSuites } from './store-suites';

storeSuites('redis');
