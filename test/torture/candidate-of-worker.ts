import { LOCK_CHANNEL, type Lock, type LockEvent, type LockService } from 'nestjs-distributed-lock';
import { subscribe } from 'node:diagnostics_channel';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../support/random.js';
import { Attempt, outcomeOf } from './attempt.js';
import type { HistoryFile } from './history.js';

/** For how long it waits by its own will, in milliseconds: far longer than a run. */
const WAIT_MS = 1e9;

/** How long the code leads before it ends by itself, and takes to end once it was told to, in leases. */
const LEADS = [0.5, 4] as const;
const OBEYS: readonly [number, number] = [0, 0.1];
/** How often it does not obey, and goes on for longer than anybody waits for it, in leases. */
const DEAF = 0.3;
const GOES_ON: readonly [number, number] = [1.1, 1.6];

/** A worker as a candidate: each time that it stands by, or leads, is a call of the history. */
export class CandidateOfWorker {
  readonly #key: string;
  readonly #leaseMs: number;
  readonly #history: HistoryFile;
  readonly #random: Random;
  #attempt: Attempt | undefined;
  #code: Promise<void> = Promise.resolve();

  constructor(locks: LockService, key: string, leaseMs: number, history: HistoryFile, random: Random) {
    this.#key = key;
    this.#leaseMs = leaseMs;
    this.#history = history;
    this.#random = random;
    subscribe(LOCK_CHANNEL, (message) => this.#hear(message as LockEvent));
    locks.lead(key, (lock) => (this.#code = this.#lead(lock)), { pause: leaseMs / 10 });
  }

  /** Its application is closed: code may still run that went on for longer than it is waited for. */
  async ended(): Promise<void> {
    await this.#code.catch(() => undefined);
    await sleep(0);
    this.#attempt?.settled('LOCK_NOT_ACQUIRED aborted');
  }

  #hear(event: LockEvent): void {
    if (event.type !== 'leader') {
      return;
    }
    const { change } = event;
    if (change === 'standby') {
      this.#attempt = new Attempt(this.#history, [this.#key], undefined, { waitMs: WAIT_MS });
    }
    const outcome = 'reason' in event ? `${change} ${event.reason}` : change;
    this.#history.write({ op: 'leader', phase: 'info', key: this.#key, fence: 'fence' in event ? event.fence : undefined, outcome });
    if (change === 'stillRuns') {
      this.#attempt?.tellLoss(`LOCK_LOST ${event.reason}`);
    }
    if (change === 'failed') {
      this.#attempt?.settled(outcomeOf(event.error));
      this.#attempt = undefined;
    }
    if (change === 'ended') {
      // Code that was asked to end, and did, has lost nothing.
      const isLost = ['expired', 'forced', 'maxHold'].includes(event.reason);
      this.#attempt?.settled(isLost ? `LOCK_LOST ${event.reason}` : 'returned');
      this.#attempt = undefined;
    }
  }

  /** Leads until it is told to stop, or has had enough of it. */
  async #lead(lock: Lock): Promise<void> {
    const random = this.#random;
    const isDeaf = random.chance(DEAF);
    const leadsMs = random.between(...LEADS) * this.#leaseMs;
    const endsMs = random.between(...(isDeaf ? GOES_ON : OBEYS)) * this.#leaseMs;
    await this.#attempt?.inside(lock, async () => {
      await sleep(leadsMs, undefined, { signal: lock.signal }).catch(() => undefined);
      if (lock.signal.aborted) {
        await sleep(endsMs);
      }
    });
    if (random.chance(0.2)) {
      throw new Error('the leader has failed');
    }
  }
}
