import type { CycleCall } from './cycle-call.js';
import { STATUS_CODES } from 'node:http';
import { printable } from './shown.js';

/** The kind of an error, for `switch` statements and API clients. */
export type LockErrorCode = 'LOCK_NOT_ACQUIRED' | 'LOCK_LOST' | 'LOCK_KEY' | 'LOCK_STORE' | 'LOCK_CONFIGURATION';

/** Why a lock was not acquired. */
export type NotAcquiredReason = 'busy' | 'aborted' | 'tooManyWaiters' | 'cycle' | 'upgrade' | 'shutdown';

/** Why a lease ended before the code did. */
export type LostReason = 'expired' | 'forced' | 'released' | 'maxHold' | 'shutdown';

/** Who holds a lock, as far as the store said. Never an owner id. */
export interface LockHolder {
  /** Host, process id and, where it is known, `Class.method`. */
  readonly by: string;
  /** Milliseconds since the holder acquired the lock. */
  readonly heldMs: number;
}

const BRAND = Symbol.for('nestjs-distributed-lock:error');

/** The part of an error that clients see: no key, host or driver text. */
export interface LockErrorBody {
  readonly statusCode: number;
  readonly message: string;
  readonly code: LockErrorCode;
  readonly retryAfterMs?: number;
}

/**
 * The base of every error that this library throws.
 *
 * Transports show `message` to clients, so it names no key, holder, host or driver text. `detail` has all of them and
 * the next step. The stack begins with `detail`, and so does the text that loggers, the console and test runners print.
 */
export abstract class LockError extends Error {
  abstract readonly code: LockErrorCode;
  /** The name of the class, also where code is minified. */
  abstract override readonly name: string;
  /** The HTTP status with which Nest answers. */
  abstract readonly status: number;
  /** The key concerned; empty where the error is about none. */
  readonly key: string;
  /** Describes what happened to which key, with numbers and the next step. For logs, not for clients. */
  declare readonly detail: string;
  /** Keeps the message from clients, as http-errors define it. */
  readonly expose = false;
  /** @internal */
  readonly [BRAND] = true;

  constructor(message: string, detail: string, key = '', options?: { readonly cause?: unknown }) {
    super(printable(message), options);
    this.key = key;
    putHidden(this, 'detail', printable(detail));
    beginStack(this, () => `${this.name}: ${this.detail}`, new.target);
  }

  /** Equals `status`, under the name that Fastify and http-errors read. */
  get statusCode(): number {
    return this.status;
  }

  /** The fields that GraphQL servers add to their answer. */
  get extensions(): Readonly<Record<string, unknown>> {
    const { message: _message, ...others } = this.toJSON();
    return others;
  }

  /** The fields that clients may read, with the standard text of the status as `message`. */
  toJSON(): LockErrorBody {
    const body = { statusCode: this.status, message: STATUS_CODES[this.status] ?? 'Error', code: this.code };
    // vitest prints an error as its `toJSON()` has it, and below a `codeFrame`. JSON, spreads and clones leave it out.
    return putHidden(body, 'codeFrame', this.detail);
  }
}

/** Adds a property that is not enumerable. */
export function putHidden<Target extends object>(target: Target, name: string | symbol, value: unknown): Target {
  return Object.defineProperty(target, name, { value, writable: true, configurable: true });
}

/** Whether `error` comes from this library, from whichever copy of it. */
export function isLockError(error: unknown): error is LockError {
  return typeof error === 'object' && error !== null && BRAND in error;
}

const NOT_ACQUIRED: Readonly<Record<NotAcquiredReason, string>> = {
  busy: 'other calls hold it or wait for it. Repeat the call later.',
  aborted: 'the call was aborted.',
  tooManyWaiters: 'too many calls wait already. Repeat the call later.',
  cycle: 'calls wait for each other.',
  upgrade: 'a call that writes was made inside one that reads.',
  shutdown: 'the application is shutting down. Repeat the call later.',
};

/**
 * The lock was not acquired, or no permit: busy for the whole `wait`, aborted, too many waiters, or shutting down. HTTP
 * 423; 429 for a permit.
 */
export class LockNotAcquiredError extends LockError {
  override readonly name: string = 'LockNotAcquiredError';
  readonly code = 'LOCK_NOT_ACQUIRED';
  readonly status: 423 | 429;
  readonly reason: NotAcquiredReason;
  /** How many permits the semaphore has; undefined for a lock. */
  readonly permits: number | undefined;
  /** Milliseconds this call had waited. */
  readonly waitedMs: number;
  /**
   * Milliseconds after which a new attempt makes sense: the rest of the lease that was seen last, at least 0; 0 in a
   * cycle.
   */
  readonly retryAfterMs: number;
  /** Who held the lock, where the store said. */
  readonly holder: LockHolder | undefined;
  /** The calls that wait for each other, with this call among them, where `reason` is `'cycle'`. */
  readonly cycle: readonly CycleCall[] | undefined;

  constructor(
    detail: string,
    key: string,
    details: {
      reason: NotAcquiredReason;
      waitedMs: number;
      retryAfterMs?: number;
      holder?: LockHolder | undefined;
      cycle?: readonly CycleCall[] | undefined;
      permits?: number | undefined;
      cause?: unknown;
    },
  ) {
    super(
      details.permits !== undefined && details.reason === 'busy'
        ? 'No permit was free: as many calls as may run at once. Repeat the call later.'
        : `The lock was not acquired: ${NOT_ACQUIRED[details.reason]}`,
      detail,
      key,
      details.cause === undefined ? undefined : { cause: details.cause },
    );
    this.permits = details.permits;
    this.status = details.permits === undefined ? 423 : 429;
    this.reason = details.reason;
    this.waitedMs = Math.round(details.waitedMs);
    const { retryAfterMs = 0 } = details;
    this.retryAfterMs = Number.isFinite(retryAfterMs) ? Math.max(0, Math.ceil(retryAfterMs)) : 0;
    this.holder = details.holder;
    this.cycle = details.cycle;
  }

  override toJSON(): LockErrorBody {
    return Object.assign(super.toJSON(), { retryAfterMs: this.retryAfterMs });
  }
}

/** The lease ended before the code did; writes of the code since then may have met another owner's writes. HTTP 500. */
export class LockLostError extends LockError {
  override readonly name: string = 'LockLostError';
  readonly code = 'LOCK_LOST';
  readonly status = 500;
  readonly reason: LostReason;
  /**
   * Whether the code of the call still runs: it did not end within a `ttl` (a second at least) after its signal
   * aborted.
   */
  readonly bodyRuns: boolean;

  constructor(detail: string, key: string, reason: LostReason, bodyRuns = false) {
    super(`The lock was lost before the call ended (${reason}).`, detail, key);
    this.reason = reason;
    this.bodyRuns = bodyRuns;
  }
}

/** A key could not be made: a placeholder has no usable value, or the key is empty or too long. HTTP 500. */
export class LockKeyError extends LockError {
  override readonly name: string = 'LockKeyError';
  readonly code = 'LOCK_KEY';
  readonly status = 500;

  constructor(detail: string, key = '', options?: { readonly cause?: unknown }) {
    super('A call has no usable key for its lock.', detail, key, options);
  }
}

/** The store failed or did not answer; `cause` is the driver's error. HTTP 503. */
export class LockStoreError extends LockError {
  override readonly name: string = 'LockStoreError';
  readonly code = 'LOCK_STORE';
  readonly status = 503;
  /** Whether the store may have carried out the command all the same: no reply came. */
  readonly unknown: boolean;

  constructor(detail: string, key: string, details: { cause?: unknown; unknown: boolean }) {
    super('The lock store failed or did not answer. Repeat the call later.', detail, key, { cause: details.cause });
    this.unknown = details.unknown;
  }
}

/**
 * Wrong options or wrong use, found at load, at bootstrap or at first use. No retry mends it. HTTP 500. Its `message`
 * is its `detail`, unless that names a key or repeats a driver.
 */
export class LockConfigurationError extends LockError {
  override readonly name: string = 'LockConfigurationError';
  readonly code = 'LOCK_CONFIGURATION';
  readonly status = 500;
  /**
   * Whether the store refuses every call with this error, since a right, a password or a table is missing: it then
   * counts as failing. Default: `false`, for an error that concerns one key or one call.
   */
  readonly ofStore: boolean;

  constructor(detail: string, key = '', options: { readonly cause?: unknown; readonly ofStore?: boolean } = {}) {
    super(key === '' && !('cause' in options) ? detail : 'A lock is configured or used wrongly.', detail, key, options);
    this.ofStore = options.ofStore === true;
  }
}

/** Whether an error says that the store fails, and not that one key or one call is wrong. */
export function isOfStore(error: LockError): boolean {
  return error.code !== 'LOCK_CONFIGURATION' || (error as LockConfigurationError).ofStore || error.key === '';
}

/**
 * The failure of the store that a call ended with, where no retry mends it; undefined where attempts have reported it,
 * and where the refusal is no failure of the store.
 */
export function refusalOfStore(refusal: unknown): LockError | undefined {
  if (isLockError(refusal)) {
    return refusal.code === 'LOCK_CONFIGURATION' && (refusal as LockConfigurationError).ofStore ? refusal : undefined;
  }
  return asLockError(refusal, '');
}

/** The word of a refusal of Redis, also from inside a script; the state of SQL, and the names of MySQL's errors. */
const REPLY_CODE = /^(?!ERR\b)[A-Z]+\b|(?<=: -)[A-Z]+|ACL(?= failure)/;
const SQL_CODE = /^(ER_\w+|(?=.*\d)[0-9A-Z]{5})$/;

/**
 * The code of the answer by which a store fails, such as `NOPERM` or `42501`; undefined where it did not answer, or
 * where that is not known.
 */
export function failureCode(error: LockError): string | undefined {
  return replyCode(error.cause);
}

/** The code of an error with which a server replied; undefined for one that a driver made. */
export function replyCode(cause: unknown): string | undefined {
  if (!(cause instanceof Error)) {
    return undefined;
  }
  if (cause.name === 'ReplyError') {
    return REPLY_CODE.exec(cause.message)?.[0] ?? 'ERR';
  }
  const code = 'code' in cause ? String(cause.code) : '';
  return SQL_CODE.test(code) ? code : undefined;
}

/**
 * The error itself, where a store rejected with a lock error; anything else is a defect of the store, and reported as
 * its failure.
 */
export function asLockError(error: unknown, key: string): LockError {
  return isLockError(error)
    ? error
    : new LockStoreError(`Lock "${key}": the store failed. Make sure that it rejects with a LockStoreError.`, key, {
        cause: error,
        unknown: true,
      });
}

/**
 * Lets the stack of an error begin with another text than its message. It is put together when somebody reads it: the
 * error of a busy lock is made often, and its stack rarely read.
 */
function beginStack(error: Error, text: () => string, made: Function): void {
  const trace: { stack?: string } = {};
  Error.captureStackTrace(trace, made);
  writeStackLater(error, () => text() + (/\n[^]*/.exec(trace.stack ?? '')?.[0] ?? ''));
}

/** Has the stack of an error written when it is first read: few are. */
export function writeStackLater(error: Error, write: () => string): void {
  const put = (value: unknown): void => void putHidden(error, 'stack', value);
  Object.defineProperty(error, 'stack', {
    configurable: true,
    get: () => {
      put(write());
      return error.stack;
    },
    set: put,
  });
}
