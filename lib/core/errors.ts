import { printable } from './printable.js';

/** What went wrong, for `switch` statements and API clients. */
export type LockErrorCode = 'LOCK_NOT_ACQUIRED' | 'LOCK_LOST' | 'LOCK_KEY' | 'LOCK_STORE' | 'LOCK_CONFIGURATION';

/** Why a lock was not acquired. */
export type NotAcquiredReason = 'busy' | 'aborted' | 'tooManyWaiters' | 'cycle' | 'shutdown';

/** Why a lease ended before the code did. */
export type LostReason = 'expired' | 'forced' | 'released' | 'maxHold' | 'shutdown';

/** Who holds a lock, as far as the store told. Never an owner id. */
export interface LockHolder {
  /** Host, process id and, where it is known, `Class.method`. */
  readonly by: string;
  /** Milliseconds since the holder acquired the lock. */
  readonly heldMs: number;
}

const BRAND = Symbol.for('nestjs-distributed-lock:error');

/**
 * The base of everything this library throws.
 *
 * It has the shape of an http-error, so Nest answers with `status`; `expose: false` keeps the message, which names keys
 * and hosts, away from clients.
 */
export abstract class LockError extends Error {
  abstract readonly code: LockErrorCode;
  /** The name of the class, also where code is minified. */
  abstract override readonly name: string;
  /** The HTTP status with which Nest answers. */
  abstract readonly status: number;
  /** The key concerned; empty where the error is about none. */
  readonly key: string;
  /** Keeps the message from clients, as http-errors define it. */
  readonly expose = false;
  /** @internal */
  readonly [BRAND] = true;

  constructor(message: string, key = '', options?: { readonly cause?: unknown }) {
    super(printable(message), options);
    this.key = key;
  }

  /** The same as `status`, under the name that Fastify and http-errors read. */
  get statusCode(): number {
    return this.status;
  }
}

/** Whether `error` comes from this library, from whichever copy of it. */
export function isLockError(error: unknown): error is LockError {
  return typeof error === 'object' && error !== null && BRAND in error;
}

/** The lock was not acquired: busy for the whole `wait`, aborted, too many waiters, or shutting down. HTTP 423. */
export class LockNotAcquiredError extends LockError {
  override readonly name: string = 'LockNotAcquiredError';
  readonly code = 'LOCK_NOT_ACQUIRED';
  readonly status = 423;
  readonly reason: NotAcquiredReason;
  /** Milliseconds this call had waited. */
  readonly waitedMs: number;
  /** Milliseconds after which trying again makes sense: what was left of the lease last seen, at least 0. */
  readonly retryAfterMs: number;
  /** Who held the lock, where the store told. */
  readonly holder: LockHolder | undefined;

  constructor(
    message: string,
    key: string,
    details: {
      reason: NotAcquiredReason;
      waitedMs: number;
      retryAfterMs?: number;
      holder?: LockHolder | undefined;
      cause?: unknown;
    },
  ) {
    super(message, key, details.cause === undefined ? undefined : { cause: details.cause });
    this.reason = details.reason;
    this.waitedMs = Math.round(details.waitedMs);
    const { retryAfterMs = 0 } = details;
    this.retryAfterMs = Number.isFinite(retryAfterMs) ? Math.max(0, Math.ceil(retryAfterMs)) : 0;
    this.holder = details.holder;
  }
}

/** The lease ended before the code did; what the code wrote since may have met another owner's writes. HTTP 500. */
export class LockLostError extends LockError {
  override readonly name: string = 'LockLostError';
  readonly code = 'LOCK_LOST';
  readonly status = 500;
  readonly reason: LostReason;
  /** Whether the code of the call still runs: it did not end within a `ttl` (a second at least) after its signal aborted. */
  readonly bodyRuns: boolean;

  constructor(message: string, key: string, reason: LostReason, bodyRuns = false) {
    super(message, key);
    this.reason = reason;
    this.bodyRuns = bodyRuns;
  }
}

/** A key could not be made: a placeholder has no usable value, or the key is empty or too long. HTTP 500. */
export class LockKeyError extends LockError {
  override readonly name: string = 'LockKeyError';
  readonly code = 'LOCK_KEY';
  readonly status = 500;
}

/** The store failed or did not answer; `cause` is the driver's error. HTTP 503. */
export class LockStoreError extends LockError {
  override readonly name: string = 'LockStoreError';
  readonly code = 'LOCK_STORE';
  readonly status = 503;
  /** Whether the store may have carried out the command all the same: no reply came, so nobody knows. */
  readonly unknown: boolean;

  constructor(message: string, key: string, details: { cause?: unknown; unknown: boolean }) {
    super(message, key, { cause: details.cause });
    this.unknown = details.unknown;
  }
}

/** Wrong options or wrong use, found at load, at bootstrap or at first use. No retry mends it. HTTP 500. */
export class LockConfigurationError extends LockError {
  override readonly name: string = 'LockConfigurationError';
  readonly code = 'LOCK_CONFIGURATION';
  readonly status = 500;
}
