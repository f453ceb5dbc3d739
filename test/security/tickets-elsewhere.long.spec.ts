import { STORES } from '../support/stores';
import { ticketSuite } from './ticket-suite';

ticketSuite(Object.keys(STORES).filter((store) => !['memory', 'redis', 'postgres'].includes(store)));
