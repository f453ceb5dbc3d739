import { POSTGRES } from './faults/postgres';
import { describeFaults } from './faults-suite';

describeFaults('PostgreSQL', POSTGRES);
