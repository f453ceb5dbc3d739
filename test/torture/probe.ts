import { setTimeout as sleep } from 'node:timers/promises';
import type { AcquireReply, HoldRecord, LockStore } from '../../lib/core/seam/lock-store.js';
import { placeEnd } from '../../lib/core/seam/shares.js';
import type { LockError } from '../../lib/core/words/errors.js';
import { newHold } from '../support/new-hold.js';
import { CLAIM_MS } from './checks/check.js';
import { now } from './history.js';
import { LEASE_MS } from './worker-options.js';

/** How many permits are taken at once: as many as the largest count of a run. */
const PERMITS = 6;
/** How long the probe has permits at most, in milliseconds: longer than it takes to take them all. */
const PERMIT_MS = 5 * LEASE_MS;

/**
 * Takes keys when everybody has ended, and releases them; answers the problems. All that the processes left has to be
 * over a lease and a claim window after the last of them ended.
 */
export class Probe {
  readonly #store: LockStore;
  readonly #endedAt: () => number;

  constructor(store: LockStore, endedAt: () => number) {
    this.#store = store;
    this.#endedAt = endedAt;
  }

  async problemsOfLock(key: string): Promise<string[]> {
    const taken = await this.#take(newHold(key, { ttlMs: LEASE_MS, by: 'probe' }), 'probe');
    if (typeof taken === 'string') {
      return [taken];
    }
    await this.#giveBack([taken]);
    return [];
  }

  /** No permit was lost, and none gained: so many can be had at once, and no more. */
  async problemsOfSemaphore(key: string): Promise<string[]> {
    const taken: HoldRecord[] = [];
    const problems: string[] = [];
    const since = now();
    for (let at = 1; at <= PERMITS && problems.length === 0; at++) {
      const permit = await this.#take(this.#permitOf(key), `probe${at}`);
      if (typeof permit === 'string') {
        problems.push(`of ${PERMITS} permits, ${at - 1} were taken: ${permit}`);
      } else {
        taken.push(permit);
      }
    }
    if (problems.length === 0) {
      const more = await this.#ask(this.#permitOf(key), undefined);
      if (!(more instanceof Error) && more.fence !== undefined && now() < since + PERMIT_MS) {
        problems.push(`"${key}" gave a permit more than the ${PERMITS} that there are`);
        await sleep(PERMIT_MS);
      }
    }
    await this.#giveBack(taken);
    return problems;
  }

  #permitOf(key: string): HoldRecord {
    return newHold(key, { ttlMs: PERMIT_MS, by: 'probe', shares: PERMITS });
  }

  /** The hold when it is in, or the problem. */
  async #take(hold: HoldRecord, place: string): Promise<HoldRecord | string> {
    const { key, shares } = hold;
    const name = `${place}${placeEnd(shares)}`;
    for (;;) {
      const reply = await this.#ask(hold, name);
      if (!(reply instanceof Error) && reply.fence !== undefined) {
        return { ...hold, fence: reply.fence };
      }
      if (now() > this.#endedAt() + LEASE_MS + CLAIM_MS) {
        // A store that does not answer is what has to be reported.
        await this.#store.turns?.leave(key, name).catch(() => undefined);
        const why = reply instanceof Error ? reply.detail : `${reply.holder.by} has it`;
        return `"${key}" could not be had ${Math.round(now() - this.#endedAt())} ms after the last process ended: ${why}`;
      }
      await sleep(50);
    }
  }

  #ask(hold: HoldRecord, name: string | undefined): Promise<AcquireReply | LockError> {
    return this.#store.acquire(hold, name === undefined ? undefined : { name }).catch((error: LockError) => error);
  }

  /** Where that fails, they are among what is left. */
  async #giveBack(holds: readonly HoldRecord[]): Promise<void> {
    await Promise.all(holds.map((hold) => this.#store.release(hold).catch(() => undefined)));
  }
}
