import { makeTickets } from '../nest/current-tickets.js';
import { TICKETS_HEADER } from './names.js';

/**
 * The header `lock-tickets` for a request to a service that is trusted; empty outside of any lock. For `fetch`:
 * `fetch(url, { redirect: 'error', headers: { ...ticketHeaders() } })`. A redirect would take the header to another host.
 */
export function ticketHeaders(): Record<string, string> {
  const text = makeTickets();
  return text === undefined ? {} : { [TICKETS_HEADER]: text };
}
