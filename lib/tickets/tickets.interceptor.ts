import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import type { Observable } from 'rxjs';
import { checkMaxLength, type EnterTicketsOptions } from '../nest/current-tickets.js';
import { enterTicketsOf } from './payload.js';

/**
 * Lets incoming messages and events of microservices enter the locks whose tickets they carry: pipes and handlers run
 * inside, and so do Observables that handlers return, until they end. The tickets are taken out of the payload first.
 * Requests over HTTP pass unchanged: see `acceptTickets()`.
 *
 * For services that trust all who can send them messages. A payload with malformed tickets is refused with a
 * `LockConfigurationError`.
 */
export class TicketsInterceptor implements NestInterceptor {
  readonly #options: EnterTicketsOptions;

  /** Throws `LockConfigurationError` for options that are wrong. */
  constructor(options: EnterTicketsOptions = {}) {
    this.#options = { maxLength: checkMaxLength(options, 'TicketsInterceptor') };
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    if (context.getType() !== 'rpc') {
      return next.handle();
    }
    return enterTicketsOf(context.switchToRpc().getData(), () => next.handle(), this.#options);
  }
}
