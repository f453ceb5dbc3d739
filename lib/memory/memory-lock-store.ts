import type { AcquireReply, ForcedListener, HoldRecord, LockStore, StoredLock } from '../core/lock-store.js';

/** Options of the memory store. */
export interface MemoryLockStoreOptions {
  /** Whether leases end by time, as they do in Redis. `false` for tests: no lease ends by time, so there are no timers. Default: `true`. */
  expires?: boolean | undefined;
}

interface Entry {
  readonly owner: string;
  readonly fence: number;
  readonly since: number;
  readonly by: string;
  readonly holds: Set<string>;
  endsAt: number;
}

/** How long a released hold is remembered, so that a late duplicate of its acquire is refused. */
const DONE_MS = 10_000;

/**
 * Locks in the memory of this process, with the semantics of the Redis store: for applications of one process, and for
 * tests. Two stores know nothing of each other.
 */
export class MemoryLockStore implements LockStore {
  readonly name = 'memory';
  readonly expires: boolean;
  readonly #locks = new Map<string, Entry>();
  /** The first answer of each hold's release, oldest first. */
  readonly #done = new Map<string, { readonly answer: boolean; readonly until: number }>();
  readonly #forced: ForcedListener[] = [];
  #fence = 0;

  constructor(options: MemoryLockStoreOptions = {}) {
    this.expires = options.expires ?? true;
  }

  async acquire(hold: HoldRecord): Promise<AcquireReply> {
    const entry = this.#entryOf(hold.key);
    const ended = this.#answerOf(hold.id) !== undefined;
    if (!entry && !ended) {
      this.#fence = Math.max(this.#fence + 1, Date.now() * 1000);
      const { owner, by } = hold;
      const granted = { owner, fence: this.#fence, since: Date.now(), by, holds: new Set([hold.id]), endsAt: this.#endOf(hold.ttlMs) };
      this.#locks.set(hold.key, granted);
      return granted;
    }
    if (entry?.owner === hold.owner && entry.holds.has(hold.id)) {
      entry.endsAt = Math.max(entry.endsAt, this.#endOf(hold.ttlMs));
      return entry;
    }
    return {
      remainingMs: entry ? entry.endsAt - performance.now() : 0,
      holder: { by: entry?.by ?? '', heldMs: entry ? Date.now() - entry.since : 0 },
    };
  }

  async join(hold: HoldRecord): Promise<boolean> {
    const entry = this.#entryOf(hold.key);
    if (entry?.owner !== hold.owner || entry.fence !== hold.fence || this.#answerOf(hold.id) !== undefined) {
      return false;
    }
    entry.holds.add(hold.id);
    entry.endsAt = Math.max(entry.endsAt, this.#endOf(hold.ttlMs));
    return true;
  }

  async renew(holds: readonly HoldRecord[]): Promise<boolean[]> {
    return holds.map((hold) => {
      const entry = this.#entryOf(hold.key);
      if (entry?.owner !== hold.owner || entry.fence !== hold.fence || !entry.holds.has(hold.id)) {
        return false;
      }
      entry.endsAt = Math.max(entry.endsAt, this.#endOf(hold.ttlMs));
      return true;
    });
  }

  async release(hold: HoldRecord): Promise<boolean> {
    const first = this.#answerOf(hold.id);
    if (first !== undefined) {
      return first;
    }
    const entry = this.#entryOf(hold.key);
    const answer = entry?.owner === hold.owner && entry.holds.delete(hold.id);
    if (answer && entry.holds.size === 0) {
      this.#locks.delete(hold.key);
    }
    this.#done.set(hold.id, { answer, until: performance.now() + DONE_MS });
    return answer;
  }

  async inspect(key: string): Promise<StoredLock | null> {
    const entry = this.#entryOf(key);
    if (!entry) {
      return null;
    }
    const { fence, holds, by, since, endsAt } = entry;
    return { fence, holds: holds.size, ttlMs: endsAt - performance.now(), since: new Date(since), by };
  }

  async forceRelease(key: string, fence: number): Promise<boolean> {
    if (this.#entryOf(key)?.fence !== fence) {
      return false;
    }
    this.#locks.delete(key);
    for (const listener of this.#forced) {
      listener(key, fence);
    }
    return true;
  }

  onForced(listener: ForcedListener): void {
    this.#forced.push(listener);
  }

  async close(): Promise<void> {
    this.#locks.clear();
    this.#done.clear();
  }

  #entryOf(key: string): Entry | undefined {
    const entry = this.#locks.get(key);
    if (entry && entry.endsAt <= performance.now()) {
      this.#locks.delete(key);
      return undefined;
    }
    return entry;
  }

  #endOf(ttlMs: number): number {
    return this.expires ? performance.now() + ttlMs : Infinity;
  }

  /** What was answered to the hold's release, while it is remembered. */
  #answerOf(id: string): boolean | undefined {
    const now = performance.now();
    for (const [oldest, done] of this.#done) {
      if (done.until > now) {
        break;
      }
      this.#done.delete(oldest);
    }
    return this.#done.get(id)?.answer;
  }
}
