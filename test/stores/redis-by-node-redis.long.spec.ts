import { storeSuites } from './store-suites';

storeSuites('redis by node-redis');
