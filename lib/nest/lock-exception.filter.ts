import { Catch, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { throwError } from 'rxjs';
import { LockError, LockNotAcquiredError, type LockErrorBody } from '../core/words/errors.js';

interface WebSocketClient {
  readonly nsp?: unknown;
  emit?(event: string, data: unknown): void;
  send?(data: string): void;
}

/**
 * Answers lock errors with their code: over HTTP with `Retry-After` where it is known, over RPC as the error of the
 * reply, over WebSocket as an `exception` event, over GraphQL as an error with `extensions`. Busy is logged without a
 * stack. Optional: without it, Nest answers HTTP with the same statuses.
 */
@Catch(LockError)
export class LockExceptionFilter implements ExceptionFilter<LockError> {
  readonly #logger = new Logger(LockExceptionFilter.name);

  catch(error: LockError, host: ArgumentsHost): unknown {
    this.#log(error);
    const body = error.toJSON();
    switch (host.getType<'http' | 'rpc' | 'ws' | 'graphql'>()) {
      case 'rpc':
        return throwError(() => ({ status: 'error', ...body }));
      case 'ws':
        return sendToSocket(host.switchToWs().getClient(), { status: 'error', ...body });
      case 'graphql':
        return graphqlError(error);
      default:
        return reply(host.switchToHttp().getResponse(), body);
    }
  }

  #log(error: LockError): void {
    if (error instanceof LockNotAcquiredError) {
      this.#logger.warn(error.detail);
    } else {
      this.#logger.error(error.detail, error.stack);
    }
  }
}

/** What Express and Fastify have in common. */
interface HttpResponse {
  readonly headersSent?: boolean;
  readonly sent?: boolean;
  header(name: string, value: string): unknown;
  status(code: number): { send(body: unknown): unknown };
}

function reply(response: HttpResponse, body: LockErrorBody): void {
  if (response.headersSent || response.sent) {
    return;
  }
  if (body.retryAfterMs !== undefined) {
    response.header('Retry-After', String(Math.max(1, Math.ceil(body.retryAfterMs / 1000))));
  }
  response.status(body.statusCode).send(body);
}

/**
 * The same without a stack, which Apollo shows in development. @nestjs/apollo would rewrite the code of an
 * HttpException.
 */
function graphqlError({ message, extensions, statusCode }: LockError): Error {
  return Object.assign(new Error(message), { stack: message, extensions, statusCode });
}

/** A socket.io client sends events by name; a plain WebSocket sends text. */
function sendToSocket(client: WebSocketClient, data: object): void {
  if (client.nsp) {
    client.emit?.('exception', data);
  } else {
    client.send?.(JSON.stringify({ event: 'exception', data }));
  }
}
