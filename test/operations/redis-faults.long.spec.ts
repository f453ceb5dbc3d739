import { REDIS } from './faults/redis';
import { describeFaults } from './faults-suite';

describeFaults('One Redis server', REDIS);
