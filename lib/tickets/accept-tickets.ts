import { BadRequestException } from '@nestjs/common';
import { LockConfigurationError } from '../core/words/errors.js';
import { EnteredTickets } from '../core/entering/entered-tickets.js';
import { checkMaxLength, type EnterTicketsOptions } from '../nest/current-tickets.js';
import { TICKETS_HEADER } from './names.js';

/** The part of a request that Express and Fastify have in common. */
export interface TicketsRequest {
  readonly headers: Record<string, string | string[] | undefined>;
  readonly headersDistinct?: Record<string, string[] | undefined>;
  /** Names and values by turns. */
  readonly rawHeaders?: string[];
}

/** The part of a response that Express and Fastify have in common. */
export interface TicketsResponse {
  readonly writableEnded: boolean;
  once(event: 'finish' | 'close', listener: () => void): unknown;
  end(...args: never[]): unknown;
}

/** The middleware that `app.use()` takes. */
export type TicketsMiddleware = (request: TicketsRequest, response: TicketsResponse, next: (error?: unknown) => void) => void;

/**
 * Lets incoming HTTP requests, on Express and Fastify, enter the locks whose tickets they carry in the header
 * `lock-tickets`: guards, pipes, handlers and resolvers of GraphQL run inside. `app.use(acceptTickets())` in `main.ts`.
 * The header is taken out of the request.
 *
 * For services that trust all who can send them requests. A header that is malformed or too long is answered with 400.
 */
export function acceptTickets(options: EnterTicketsOptions = {}): TicketsMiddleware {
  if (typeof (options as Partial<TicketsRequest> | null)?.headers === 'object') {
    throw new LockConfigurationError('acceptTickets was called with a request. Call it yourself: app.use(acceptTickets()).');
  }
  const maxLength = checkMaxLength(options, 'acceptTickets');
  return (request, response, next) => {
    const { [TICKETS_HEADER]: text } = request.headers;
    if (text === undefined) {
      next();
      return;
    }
    takeOut(request);
    let entered: EnteredTickets;
    try {
      entered = new EnteredTickets(text, maxLength);
    } catch {
      const refusal = new BadRequestException(`The header ${TICKETS_HEADER} is malformed, or has more than ${maxLength} characters.`);
      // Where Mercurius answers, it reads the status from here.
      next(Object.assign(refusal, { statusCode: refusal.getStatus() }));
      return;
    }
    entered.begin();
    let isInside = true;
    const leave = (): void => {
      if (isInside) {
        isInside = false;
        entered.end();
      }
    };
    response.once('finish', leave);
    response.once('close', () => leaveAtEnd(response, leave));
    entered.run(() => next());
  };
}

/** Node makes `headersDistinct` of as many raw headers as came, so it is read before one is taken out of these. */
function takeOut({ headers, headersDistinct, rawHeaders = [] }: TicketsRequest): void {
  delete headers[TICKETS_HEADER];
  delete headersDistinct?.[TICKETS_HEADER];
  for (let at = rawHeaders.length - 2; at >= 0; at -= 2) {
    if (rawHeaders[at]?.toLowerCase() === TICKETS_HEADER) {
      rawHeaders.splice(at, 2);
    }
  }
}

/**
 * The connection has ended. Where the client has gone, code that still runs was begun inside the client's lock: it
 * stays inside until it ends the response, which is never finished then.
 */
function leaveAtEnd(response: TicketsResponse, leave: () => void): void {
  if (response.writableEnded) {
    leave();
  } else {
    const end = response.end.bind(response);
    response.end = (...args) => {
      leave();
      return end(...args);
    };
  }
}
