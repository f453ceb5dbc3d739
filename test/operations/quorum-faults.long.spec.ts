import { QUORUM } from './faults/quorum';
import { describeFaults } from './faults-suite';

describeFaults('A quorum of three', QUORUM);
