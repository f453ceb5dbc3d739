import { outages } from './outages-suite.js';

outages(['redis by node-redis', 'quorum', 'postgres', 'mysql']);
