import { SENTINEL } from './faults/sentinel';
import { describeFaults } from './faults-suite';

describeFaults('Redis with Sentinel', SENTINEL);
