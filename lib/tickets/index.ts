export { TICKETS_FIELD, TICKETS_HEADER } from './names.js';
export type { EnterTicketsOptions } from '../nest/current-tickets.js';
export { acceptTickets, type TicketsMiddleware, type TicketsRequest, type TicketsResponse } from './accept-tickets.js';
export { TicketsInterceptor } from './tickets.interceptor.js';
export { enterTicketsOf, withTickets, type WithTickets } from './payload.js';
export { sendTickets, ticketHeaders, type AxiosLike } from './send-tickets.js';
