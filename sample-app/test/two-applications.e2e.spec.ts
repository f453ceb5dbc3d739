import { twoApplications } from './two-applications-suite.js';

twoApplications(['redis']);
