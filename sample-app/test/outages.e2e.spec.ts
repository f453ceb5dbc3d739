import { outages } from './outages-suite.js';

outages(['redis']);
