import { LockConfigurationError, LockStoreError } from '../../core/words/errors.js';
import type { StoredLock } from '../../core/seam/lock-store.js';
import type { Listeners } from '../kit/listeners.js';
import { probe, PROBE_MS, type Probe } from '../kit/probe.js';
import { Calls } from './calls.js';
import type { OneDatabase } from './database-store.js';
import type { Dialect } from './dialect.js';
import { once } from './once.js';
import type { Call } from './statements.js';
import { Tidying } from './tidying.js';

/** The limits of what is run at the start, in milliseconds: of a query, of the check, and of making the tables. */
export const START_MS = { query: 1_000, check: 3_000, schema: 30_000 } as const;

/** What the rows of the table of locks are called. */
export interface RowNames<Name> {
  row(key: string): Name;
  /** The key that a row is for. */
  key(row: Name): string;
  /** The rows of keys that begin with `prefix` come after the first name, and before the second one. */
  rangeOf(prefix: string): readonly [after: Name, before: Name];
  /** The row that says which of several databases this is. It is no key's row. */
  readonly numberRow: Name;
}

/** What a database is opened with. */
export interface DatabaseOptions<Keys> {
  /** The name of the store instance, which is notified of turns. */
  readonly process: string;
  readonly keys: Keys;
  /** Which of several databases this is, such as `1 of 2`. */
  readonly number: string;
  /** Who is notified. */
  readonly listeners: Listeners;
  readonly warn: (message: string) => void;
  /** Whether nothing is written at the start. */
  readonly readOnly: boolean;
}

/** A lock that is held, and the name of its row. */
export interface HeldRow<Name> {
  readonly row: Name;
  readonly stored: StoredLock;
}

/** One database with locks: its tables, the calls of its operations, and what notifies a process of its turns. */
export abstract class Database<Name, Keys extends RowNames<Name>, Reply> implements OneDatabase {
  readonly dialect: Dialect<unknown, Reply>;
  readonly calls: Calls<Reply>;
  readonly tidying: Tidying = new Tidying(() => this.tidySome());
  /** What operations have to pass first, because the database was away when it was opened. */
  #check: ((key: string, limitMs: number) => Promise<void>) | undefined;

  constructor(dialect: Dialect<unknown, Reply>) {
    this.dialect = dialect;
    this.calls = new Calls(dialect, (key, limitMs) => this.#check?.(key, limitMs));
  }

  /** Whether this process is notified of its turns, as far as it knows. */
  abstract readonly isNotified: boolean;
  abstract readonly hearsTurns: boolean | undefined;
  /** Leaves alone what is there already: that needs no right to make it, and no operation waits. */
  abstract ensureSchema(): Promise<void>;
  /** The rows of locks that are held, after one row and before another: 1,000 at most, in their order. */
  abstract heldRows(after: Name, before: Name, call: Call): Promise<readonly HeldRow<Name>[]>;

  /** What the server's clock reads, in ms since 1970. */
  protected abstract askTime(call: Call): Promise<number>;
  /** Throws `LockConfigurationError` for a server, or tables, that cannot have locks. */
  protected abstract checkServer(warn: (message: string) => void, call: () => Call): Promise<void>;
  /** Records which of several databases this is, unless that is recorded; what is recorded then, if anything. */
  protected abstract numbered(row: Name, number: string, call: Call): Promise<string | undefined>;
  /** The statement that lets a database forget its number. */
  protected abstract forgetting(row: Name): string;
  /** Deletes some expired done marks; whether there may be more. */
  protected abstract tidySome(): Promise<boolean>;
  protected abstract listen(options: DatabaseOptions<Keys>): Promise<void> | void;
  protected abstract stopListening(): void;

  /**
   * Checks what no retry mends, and begins to listen for turns. Rejects with `LockConfigurationError`. A database that is away is worth a
   * warning, and is checked by the first operation that reaches it.
   */
  async open(given: DatabaseOptions<Keys>): Promise<void> {
    this.close();
    const options = { ...given, warn: once(given.warn) };
    this.#check = (key, limitMs) => this.#pass(options, key, limitMs);
    try {
      await this.#pass(options, '', START_MS.check);
    } catch (error) {
      if (!(error instanceof LockStoreError)) {
        throw error;
      }
      options.warn(`${error.detail} Locked calls fail until then.`);
    }
    await this.listen(options);
  }

  probe(): Promise<Probe> {
    return probe(() => this.askTime({ key: '', limitMs: PROBE_MS }));
  }

  close(): void {
    this.tidying.stop();
    this.stopListening();
  }

  /** Checks the server, the tables and the number of the database. Operations do without from then on. */
  async #pass({ keys, number, readOnly, warn }: DatabaseOptions<Keys>, key: string, limitMs: number): Promise<void> {
    const giveUpAt = performance.now() + limitMs;
    const call = (): Call => ({ key, limitMs: Math.min(START_MS.query, Math.max(0, giveUpAt - performance.now())) });
    await this.checkServer(warn, call);
    const known = readOnly ? undefined : await this.numbered(keys.numberRow, number, call());
    if (known !== undefined && known !== number) {
      throw new LockConfigurationError(
        `${this.dialect.store}: pool ${number} leads to a database that other processes know as ${known}. Pass the same databases in the same order ` +
          `everywhere. Where the list was changed, stop all processes first and then run ${this.forgetting(keys.numberRow)} in each of them.`,
      );
    }
    this.#check = undefined;
  }
}
