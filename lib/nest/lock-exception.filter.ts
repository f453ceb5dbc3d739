import { Catch, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { throwError } from 'rxjs';
import { LockError, LockLostError, LockNotAcquiredError, type LockErrorBody } from '../core/words/errors.js';
import { grpcAnswer } from './grpc-answer.js';
import { Repetitions } from './repetitions.js';

interface WebSocketClient {
  readonly nsp?: unknown;
  emit?(event: string, data: unknown): void;
  send?(data: string): void;
}

/**
 * Answers lock errors with their code: over HTTP with `Retry-After` where it is known, over gRPC as a status with
 * metadata, over other microservices as the error of the reply, over WebSocket as an `exception` event, over GraphQL as
 * an error with `extensions`. The first error of a kind is logged, busy without a stack; those that follow it are
 * counted, in one line a minute. Optional: without it, Nest answers HTTP with the same statuses.
 */
@Catch(LockError)
export class LockExceptionFilter implements ExceptionFilter<LockError> {
  readonly #logger = new Logger(LockExceptionFilter.name);
  readonly #repetitions = new Repetitions((line) => this.#logger.warn(line));

  /** Throws the error again where it came by a transport of somebody else's. */
  catch(error: LockError, host: ArgumentsHost): unknown {
    const answer = answerTo(error, host);
    this.#log(error);
    return answer;
  }

  #log(error: LockError): void {
    if (!this.#repetitions.isFirst(kindOf(error), error.detail)) {
      return;
    }
    if (error instanceof LockNotAcquiredError) {
      this.#logger.warn(error.detail);
    } else {
      this.#logger.error(error.detail, error.stack);
    }
  }
}

/** Which errors are news of each other: a busy lock by its key, all else by why it fails. */
function kindOf(error: LockError): string {
  if (error instanceof LockNotAcquiredError) {
    return `${error.name} ${error.reason} ${error.key}`;
  }
  const { code, message = '' } = (error.cause ?? {}) as { readonly code?: string; readonly message?: string };
  return `${error.name} ${error instanceof LockLostError ? error.reason : (code ?? /^[A-Z]+\b/.exec(message)?.[0] ?? '')}`;
}

function answerTo(error: LockError, host: ArgumentsHost): unknown {
  const body = { ...error.toJSON() };
  switch (host.getType<'http' | 'rpc' | 'ws' | 'graphql'>()) {
    case 'http':
      return reply(host.switchToHttp().getResponse(), body);
    case 'rpc':
      return grpcAnswer(host.getArgs(), body) ?? throwError(() => ({ status: 'error', ...body }));
    case 'ws':
      return sendToSocket(host.switchToWs().getClient(), { status: 'error', ...body });
    case 'graphql':
      return graphqlError(error);
    default:
      throw error;
  }
}

/** The part of Node's response that is used. */
interface RawResponse {
  readonly headersSent?: boolean;
  readonly writableEnded?: boolean;
  end?(): unknown;
}

/** The part of a response that Express and Fastify have in common. */
interface HttpResponse extends RawResponse {
  /** Fastify's. */
  readonly sent?: boolean;
  readonly raw?: RawResponse;
  header(name: string, value: string): unknown;
  status(code: number): { send(body: unknown): unknown };
}

function reply(response: HttpResponse, body: LockErrorBody): void {
  const raw = response.raw ?? response;
  if (raw.headersSent && !raw.writableEnded) {
    // A handler has begun to answer: nothing can be said any more, and the client must not wait.
    raw.end?.();
  }
  if (raw.headersSent || response.sent) {
    return;
  }
  if (body.retryAfterMs !== undefined) {
    response.header('Retry-After', String(Math.max(1, Math.ceil(body.retryAfterMs / 1000))));
  }
  response.status(body.statusCode).send(body);
}

/**
 * The error for GraphQL, without a stack, which Apollo would show in development. @nestjs/apollo would rewrite the code
 * of an HttpException.
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
