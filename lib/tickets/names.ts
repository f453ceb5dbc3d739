/** The header of HTTP requests in which tickets travel. */
export const TICKETS_HEADER = 'lock-tickets';

/** The field of messages and jobs in which tickets travel. */
export const TICKETS_FIELD = 'lockTickets';
