import { storeSuites } from './store-suites';

storeSuites('polled memory');
