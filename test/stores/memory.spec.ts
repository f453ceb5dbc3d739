import { storeSuites } from './store-suites';

storeSuites('memory');
