import { twoApplications } from './two-applications-suite.js';

twoApplications(['quorum', 'postgres', 'mysql']);
