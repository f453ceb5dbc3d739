import { ticketSuite } from './ticket-suite';

ticketSuite(['memory', 'redis', 'postgres']);
