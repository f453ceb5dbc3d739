import type { LockStore } from '../../../lib/core/seam/lock-store.js';
import { isLockError } from '../../../lib/core/words/errors.js';
import type { Address } from '../address/address.js';
import { unheardBy } from '../hearing.js';
import type { Place } from './place.js';
import { rulesOf, verdictOf, type Verdict } from './rules.js';
import type { Server } from './server.js';

/** The rules are made for a server that answers within this time, in milliseconds; others get more. */
const QUICK_MS = 5;
const MOST_SCALE = 10;
/** The groups whose rules need messages. */
const BY_MESSAGES: ReadonlySet<string> = new Set(['turns', 'exchange', 'turns of sharers', 'messages', 'operator', 'life cycle']);

/** One run, which Ctrl+C ends early, and the end of who reads its output. Whatever ends it, what it made is removed. */
export class Run {
  readonly #place: Place;
  readonly #stores = new Set<LockStore>();
  readonly #stopped = new AbortController();
  readonly #stop = (): void => this.#stopped.abort(new Error('the run was interrupted'));

  constructor(place: Place) {
    this.#place = place;
    process.once('SIGINT', this.#stop).once('SIGTERM', this.#stop).once('SIGHUP', this.#stop);
    process.stdout.once('error', this.#stop);
    // The rule that runs fails at once, and nothing is written after it.
    this.#stopped.signal.addEventListener('abort', () => void this.#closeStores());
  }

  get isStopped(): boolean {
    return this.#stopped.signal.aborted;
  }

  async *verdicts({ hears: heard, latencyMs }: Server, address: Address): AsyncGenerator<Verdict, void, undefined> {
    const timeScale = Math.min(MOST_SCALE, Math.max(1, latencyMs / QUICK_MS));
    const hears = heard !== false;
    const rules = rulesOf({ offers: this.#place.offers(hears), timeScale, connect: () => this.#connect(hears) });
    const hint = (group: string): string => (!hears && BY_MESSAGES.has(group) ? unheardBy(address) : '');
    for (const rule of rules) {
      const verdict = await verdictOf(rule, hint);
      if (this.isStopped) {
        return;
      }
      yield verdict;
    }
  }

  /** Removes what was made; why that failed, where it did. */
  async end(): Promise<string | undefined> {
    await this.#closeStores();
    try {
      await this.#place.remove();
      return undefined;
    } catch (error) {
      const said = isLockError(error) ? error.detail : (error as Error).message;
      return `What the run made could not be removed: ${said} Remove ${this.#place.name}.`;
    } finally {
      process.off('SIGINT', this.#stop).off('SIGTERM', this.#stop).off('SIGHUP', this.#stop);
      process.stdout.off('error', this.#stop);
      await this.#place.end();
    }
  }

  async #connect(hears: boolean): Promise<LockStore> {
    this.#stopped.signal.throwIfAborted();
    const store = await this.#place.connect(hears);
    this.#stores.add(store);
    return store;
  }

  async #closeStores(): Promise<void> {
    await Promise.allSettled([...this.#stores].map((store) => store.close()));
    this.#stores.clear();
  }
}
