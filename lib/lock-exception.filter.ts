import { Catch, HttpException, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { STATUS_CODES } from 'node:http';
import { throwError } from 'rxjs';
import { LockError, LockNotAcquiredError } from './core/errors.js';

/** What a client is told: no key, host or driver text. */
interface LockErrorBody {
  readonly statusCode: number;
  readonly message: string;
  readonly code: string;
  readonly retryAfterMs?: number;
}

interface WebSocketClient {
  readonly nsp?: unknown;
  emit?(event: string, data: unknown): void;
  send?(data: string): void;
}

/**
 * Answers lock errors with their code: over HTTP with `Retry-After` where it is known, over RPC as the error of the
 * reply, over WebSocket as an `exception` event, over GraphQL as an error with `extensions`. Busy is logged without a
 * stack. Optional: without it, Nest answers with the same statuses.
 */
@Catch(LockError)
export class LockExceptionFilter implements ExceptionFilter<LockError> {
  readonly #logger = new Logger(LockExceptionFilter.name);

  catch(error: LockError, host: ArgumentsHost): unknown {
    this.#log(error);
    const body = bodyOf(error);
    switch (host.getType<'http' | 'rpc' | 'ws' | 'graphql'>()) {
      case 'rpc':
        return throwError(() => ({ status: 'error', ...body }));
      case 'ws':
        return sendToSocket(host.switchToWs().getClient(), { status: 'error', ...body });
      case 'graphql':
        return Object.assign(new HttpException(body, body.statusCode), { extensions: body });
      default:
        return reply(host.switchToHttp().getResponse(), body);
    }
  }

  #log(error: LockError): void {
    if (error instanceof LockNotAcquiredError) {
      this.#logger.warn(error.message);
    } else {
      this.#logger.error(error.message, error.stack);
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

function bodyOf(error: LockError): LockErrorBody {
  const body = { statusCode: error.status, message: STATUS_CODES[error.status] ?? 'Error', code: error.code };
  return error instanceof LockNotAcquiredError ? { ...body, retryAfterMs: error.retryAfterMs } : body;
}

/** A socket.io client sends events by name; a plain WebSocket sends text. */
function sendToSocket(client: WebSocketClient, data: object): void {
  if (client.nsp) {
    client.emit?.('exception', data);
  } else {
    client.send?.(JSON.stringify({ event: 'exception', data }));
  }
}
