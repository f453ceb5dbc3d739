/// <reference lib="esnext.disposable" preserve="true" />
import type { Duration } from '../core/words/duration.js';

/** The options of `lead`. */
export interface LeadOptions {
  /**
   * How long a leader that crashed keeps the others out; at least 100 ms. The lease of a running leader is renewed.
   * Default: the module's, `'10s'`.
   */
  ttl?: Duration | undefined;
  /**
   * For how long the candidate stays out when its code ended by itself, so that another process leads next: a random
   * time between half of this and all of it. When its code threw, twice as long with each time in a row, up to 30 s.
   * Default: `'1s'`.
   */
  pause?: Duration | undefined;
  /** Ends the candidacy when it aborts, as `stop()` does. */
  signal?: AbortSignal | undefined;
  /** The name of the leader in `inspect` and logs, after host and process. `@Leader` sets `Class.method`. */
  by?: string | undefined;
  /** The name that events and metrics count the candidate under. Default: the key. */
  name?: string | undefined;
}

/** A process that leads, or stands by to lead: the answer of `LockService.lead()`. */
export interface Candidate extends AsyncDisposable {
  /** The key of the leader's lock: the candidate leads by it. */
  readonly key: string;
  /** Whether it leads, and can trust its lease right now, by the clock. */
  isLeader(): boolean;
  /**
   * Ends the candidacy: `lock.signal` of the running code aborts, and the lock is released once the code has ended.
   * Resolves then. After a `ttl` (a second at least) it resolves also where the code still runs, and the lock is
   * released all the same. Called from inside the code, it resolves at once. The grant of an attempt that is on its way
   * is released in the background. Never rejects, and may be called twice.
   */
  stop(): Promise<void>;
}
