import { LockConfigurationError, LockStoreError } from '../../lib/core/words/errors.js';
import { isAnswered } from '../../lib/core/words/lock-health.js';
import type { LockStore } from '../../lib/core/seam/lock-store.js';
import { Locks } from '../../lib/locks.js';
import { checkPrefix } from '../../lib/core/words/lock-key.js';
import type { Address } from './address/address.js';
import type { CommandLine } from './command-line.js';
import { whyUnheard } from './hearing.js';
import type { Finding } from './doctor/finding.js';
import { makeStore } from './stores/make-store.js';
import type { NewStore } from './stores/new-store.js';
import { WrongUse } from './wrong-use.js';

/** The locks of a store, as a process that only looks. */
export class Session {
  readonly locks: Locks;
  readonly store: LockStore;
  readonly #address: Address;
  readonly #made: NewStore;
  readonly #prefix: string;
  #unheard: string | undefined;

  private constructor(address: Address, made: NewStore, prefix: string) {
    const { store } = made;
    this.store = store;
    this.#address = address;
    this.#made = made;
    this.#prefix = prefix;
    this.locks = new Locks({ name: 'default', store, maxWaiters: { perKey: 0, perProcess: 0 }, onTrouble: () => undefined });
  }

  /** Without a connection. Throws `WrongUse` for an address or a name that cannot be. */
  static async of({ address, prefix, schema }: CommandLine): Promise<Session> {
    try {
      return new Session(address, await makeStore(address, schema), checkPrefix(prefix));
    } catch (error) {
      throw error instanceof LockConfigurationError ? new WrongUse(error.detail, { cause: error }) : error;
    }
  }

  /** Why processes could not be asked, and what to do; undefined where they could. */
  get unheard(): string | undefined {
    return this.#unheard;
  }

  /** The findings of the servers, each about itself. */
  findings(): Promise<readonly Finding[]> {
    return this.#made.findings(this.#prefix);
  }

  /** Opens the store without writing. */
  async open(warn: (message: string) => void): Promise<void> {
    await this.store.open?.({ prefix: this.#prefix, readOnly: true, warn });
  }

  /** Rejects with the reason where the store does not answer. */
  async connect(): Promise<void> {
    const warnings: string[] = [];
    await this.open((message) => warnings.push(message));
    await this.#checkStore();
    this.#unheard = await this.#whyUnheard(warnings);
  }

  /** Rejects with the reason where no process can have answered: the store is away, or messages do not arrive here. */
  async checkHearing(): Promise<void> {
    await this.#checkStore();
    const unheard = await this.#whyUnheard([]);
    if (unheard !== undefined) {
      throw cannotAsk(unheard);
    }
  }

  async close(): Promise<void> {
    await this.locks.shutdown();
    await this.store.close();
    await this.#made.end();
  }

  async #checkStore(): Promise<void> {
    const said = await this.store.health?.();
    if (said && !isAnswered(said)) {
      const answered = said.members?.filter(({ reachable }) => reachable).length ?? 0;
      throw new LockStoreError(
        `Only ${answered} of ${said.members?.length} servers of the quorum gave an answer that counts, and ${said.majority} are needed. Find out why with: doctor.`,
        '',
        { unknown: false },
      );
    }
  }

  async #whyUnheard(warnings: readonly string[]): Promise<string | undefined> {
    return this.store.messages && whyUnheard(this.store.messages, this.#address, warnings);
  }
}

/** The error of a command that only asks processes. */
export function cannotAsk(unheard: string): LockConfigurationError {
  return new LockConfigurationError(`Processes cannot be asked: ${unheard}`);
}
