import type { CallOptions } from '../core/words/call-options.js';
import { callerOf } from '../core/words/caller.js';
import type { Candidate } from './candidate.js';
import { Candidacy } from './candidacy.js';
import type { Clock } from '../core/seam/time.js';
import { LockNotAcquiredError } from '../core/words/errors.js';
import type { LeaderBody, RunLocked } from './leadership.js';
import type { Reporter } from '../core/watching/reporter.js';

/**
 * For how long a candidate waits until it asks anew, in milliseconds: 20 days. No timer lasts longer than 24.8 days,
 * and some timers have to be longer than a wait.
 */
const WAIT_MS = 20 * 86_400_000;

interface CandidatesParts {
  readonly run: RunLocked;
  readonly clock: Clock;
  readonly reporter: Reporter;
}

/** The candidates of this process, by the locks of one store. */
export class Candidates {
  readonly #parts: CandidatesParts;
  readonly #all = new Set<Candidacy>();
  #isClosing = false;

  constructor(parts: CandidatesParts) {
    this.#parts = parts;
  }

  /** Adds a candidate, which stands by from now on. */
  add(key: string, asked: CallOptions, pauseMs: number, body: LeaderBody): Candidate {
    if (this.#isClosing) {
      throw new LockNotAcquiredError(`Nobody can stand by for "${key}": the application is shutting down.`, key, {
        reason: 'shutdown',
        waitedMs: 0,
      });
    }
    const { site, name } = asked.caller;
    const caller = { ...callerOf(`${site} as leader`, site, name), leads: true };
    const call = { ...asked, caller, waitMs: WAIT_MS, maxHoldMs: Infinity, onUnavailable: 'wait' as const };
    const { reporter, run, clock } = this.#parts;
    const candidacy = new Candidacy({
      key,
      call,
      pauseMs,
      body,
      run,
      clock,
      signal: asked.signal,
      report: (change) => reporter.leader({ key, caller }, change),
    });
    this.#all.add(candidacy);
    void candidacy.ended.then(() => this.#all.delete(candidacy));
    return candidacy;
  }

  /** Ends all candidates, and refuses further ones; undefined where there are none. Never rejects. */
  stop(): Promise<unknown> | undefined {
    this.#isClosing = true;
    return this.#all.size === 0 ? undefined : Promise.all([...this.#all].map((candidacy) => candidacy.end('shutdown')));
  }
}
