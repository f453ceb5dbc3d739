import { MYSQL } from './faults/mysql';
import { describeFaults } from './faults-suite';

describeFaults('MySQL and MariaDB', MYSQL);
