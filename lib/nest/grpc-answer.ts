import { of, throwError, type Observable } from 'rxjs';
import type { LockErrorBody } from '../core/words/errors.js';

/** The metadata of a gRPC call. They are known by their methods: the library does not depend on grpc-js. */
interface Metadata {
  readonly constructor: Function;
  set(name: string, value: string): void;
  toHttp2Headers(): unknown;
}

/** The call itself, which handlers with `@GrpcStreamCall` get. */
interface StreamCall {
  readonly metadata: Metadata;
  emit(event: 'error', error: object): unknown;
}

/**
 * https://grpc.io/docs/guides/status-codes: ABORTED, RESOURCE_EXHAUSTED and UNAVAILABLE, by the status of HTTP;
 * INTERNAL for others.
 */
const STATUSES: Readonly<Record<number, number>> = { 423: 10, 429: 8, 503: 14 };
const INTERNAL = 13;

/**
 * The answer to a gRPC call, as a status with metadata; undefined where a handler with these arguments serves another
 * transport.
 */
export function grpcAnswer([first, second]: readonly unknown[], body: LockErrorBody): Observable<unknown> | undefined {
  if (isMetadata(second)) {
    return throwError(() => statusOf(body, second));
  }
  if (!isStreamCall(first)) {
    return undefined;
  }
  const status = statusOf(body, first.metadata);
  if (typeof second === 'function') {
    second(status);
  } else {
    first.emit('error', status);
  }
  // Nest leaves the rejection of such a handler unhandled, which ends the process, and its client without an answer.
  return of(undefined);
}

function statusOf({ statusCode, message, code, retryAfterMs }: LockErrorBody, received: Metadata): object {
  const metadata = Reflect.construct(received.constructor, []) as Metadata;
  metadata.set('lock-code', code);
  if (retryAfterMs !== undefined) {
    metadata.set('retry-after-ms', String(retryAfterMs));
  }
  return { code: STATUSES[statusCode] ?? INTERNAL, message, metadata };
}

function isMetadata(value: unknown): value is Metadata {
  const { set, toHttp2Headers } = (value ?? {}) as Partial<Metadata>;
  return typeof set === 'function' && typeof toHttp2Headers === 'function';
}

function isStreamCall(value: unknown): value is StreamCall {
  const { metadata, emit } = (value ?? {}) as Partial<StreamCall>;
  return typeof emit === 'function' && isMetadata(metadata);
}
