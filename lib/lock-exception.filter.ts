import { Catch, HttpException, Inject, Logger, Optional, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
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
  readonly #adapterHost: HttpAdapterHost | undefined;

  constructor(@Optional() @Inject(HttpAdapterHost) adapterHost?: HttpAdapterHost) {
    this.#adapterHost = adapterHost;
  }

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
        return this.#reply(body, host);
    }
  }

  #log(error: LockError): void {
    if (error instanceof LockNotAcquiredError) {
      this.#logger.warn(error.message);
    } else {
      this.#logger.error(error.message, error.stack);
    }
  }

  #reply(body: LockErrorBody, host: ArgumentsHost): void {
    const adapter = this.#adapterHost?.httpAdapter;
    const response: unknown = host.switchToHttp().getResponse();
    if (!adapter) {
      throw new HttpException(body, body.statusCode);
    }
    if (adapter.isHeadersSent(response)) {
      adapter.end(response);
      return;
    }
    if (body.retryAfterMs !== undefined) {
      adapter.setHeader(response, 'Retry-After', String(Math.max(1, Math.ceil(body.retryAfterMs / 1000))));
    }
    adapter.reply(response, body, body.statusCode);
  }
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
