/// <reference lib="esnext.disposable" preserve="true" />
import type { Duration } from '../core/words/duration.js';

/** The options of `lead`. */
export interface LeadOptions {
  /**
   * How long a leader that crashed keeps the others out; at least 100 ms. The lease of one that runs is renewed. Default: the
   * module's, `'10s'`.
   */
  ttl?: Duration | undefined;
  /**
   * For how long the candidate stays out when its code ended by itself, so that another process leads next, and half of that at
   * least. When its code threw, twice as long with each time in a row, up to 30 s. Default: `'1s'`.
   */
  pause?: Duration | undefined;
  /** Ends the candidacy when it aborts, as `stop()` does. */
  signal?: AbortSignal | undefined;
  /** What `inspect` and logs call the leader, besides host and process. `@Leader` says `Class.method`. */
  by?: string | undefined;
  /** What events and figures count it as. Default: the key. */
  name?: string | undefined;
}

/** A process that leads, or stands by to lead: what `LockService.lead()` answers. */
export interface Candidate extends AsyncDisposable {
  /** What it leads by: the key of the leader's lock. */
  readonly key: string;
  /** Whether it leads, and can trust its lease right now, by the clock. */
  isLeader(): boolean;
  /**
   * Ends the candidacy: `lock.signal` of the running code aborts, and the lock is released once the code has ended. Resolves then,
   * but after a `ttl` (a second at least) also where the code still runs: the lock is released all the same. Called from inside the
   * code, it resolves at once. What an attempt is granted that is on its way is released in the background. Never rejects, and may be
   * called twice.
   */
  stop(): Promise<void>;
}
