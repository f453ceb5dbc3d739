import { storeSuites } from './store-suites';

storeSuites('redis with a replica by node-redis');
