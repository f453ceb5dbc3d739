import { twoApplications } from './two-applications-suite.js';

twoApplications(['redis by node-redis', 'quorum', 'postgres', 'mysql']);
