import { AsyncResource } from 'node:async_hooks';
import type { StoredLock } from '../core/seam/lock-store.js';
import { LockConfigurationError, LockStoreError } from '../core/words/errors.js';
import { OncePerKey } from '../core/words/once-per-key.js';
import type { Listeners } from '../kit/listeners.js';
import { probe, PROBE_MS, type Probe, type ProbeAnswer } from '../kit/probe.js';
import { Calls } from './calls.js';
import type { Dialect } from './dialect.js';
import type { LockOperations } from './lock-operations.js';
import type { StatementLimit } from './statements.js';
import { Tidying } from './tidying.js';

/** The limits of the statements at the start, in milliseconds: of a query, of the check, and of making the tables. */
export const START_MS = { query: 1_000, check: 3_000, schema: 30_000 } as const;

/** The name of a row of the table of locks. */
export type RowName = string | Buffer;

/** The names of the rows of a prefix. Keys are framed, so that no two pairs of prefix and key share a row. */
export interface RowNames {
  row(key: string): RowName;
  /** The key that a row is for. */
  key(row: RowName): string;
  /** The rows of keys that begin with `prefix` come after the first name, and before the second one. */
  rangeOf(prefix: string): readonly [after: RowName, before: RowName];
  /** The row that says which of several databases this is. It is no key's row. */
  readonly numberRow: RowName;
}

/** A lock that is held, with its row. */
export interface HeldRow {
  readonly row: RowName;
  readonly stored: StoredLock;
}

/** Notifies a process of its turns. */
export interface Notifier {
  /** Whether it does, as far as it knows. */
  readonly acknowledged: boolean;
  /** Resolves when it does, or is known not to. */
  open?(): Promise<void>;
  close(): void;
}

/** The options that a database is opened with. */
export interface DatabaseOptions<Names> {
  /** The name of the store instance. */
  readonly process: string;
  readonly keys: Names;
  /** Which of several databases this is, such as `1 of 2`. */
  readonly number: string;
  /** Who is notified. */
  readonly listeners: Listeners;
  readonly warn: (message: string) => void;
  /** Whether nothing is written at the start. */
  readonly readOnly: boolean;
}

/** One database with locks: its tables, the calls of its operations, and the notifier of its turns. */
export abstract class Database<Names extends RowNames = RowNames, N extends Notifier = Notifier> {
  readonly dialect: Dialect;
  readonly operations: LockOperations;
  readonly calls: Calls;
  readonly tidying: Tidying = new Tidying(() => this.tidySome());
  /**
   * The check that operations have to pass first, where the database was away when it was opened. After `close` it lets
   * nothing pass.
   */
  #check: (() => Promise<void>) | undefined;
  /** Of the `open` that was called last, until it is closed. */
  #opened: DatabaseOptions<Names> | undefined;
  #notifier: N | undefined;

  constructor(dialect: Dialect, operations: LockOperations) {
    this.dialect = dialect;
    this.operations = operations;
    this.calls = new Calls(dialect, () => this.#check?.(), Object.values(operations));
  }

  /** Whether it is notified of turns; undefined where it was told not to be. */
  abstract readonly hearsTurns: boolean | undefined;
  /** Leaves existing parts alone: this needs no right to make them, and no operation waits. */
  abstract ensureSchema(): Promise<void>;
  /** The locks that are held, after one row and before another: 1,000 at most, in their order. */
  abstract heldRows(after: RowName, before: RowName, limit: StatementLimit): Promise<readonly HeldRow[]>;

  /** Asks for the time of the server's clock, and whether the server takes writes. */
  protected abstract askState(limit: StatementLimit): Promise<ProbeAnswer>;
  /** Throws `LockConfigurationError` for a server, or tables, that cannot have locks. */
  protected abstract checkServer(warn: (message: string) => void, limit: () => StatementLimit): Promise<void>;
  /** The statement that lets a database forget its number. */
  protected abstract forgetting(row: RowName): string;
  /** Deletes some expired done marks; whether there may be more. */
  protected abstract tidySome(): Promise<boolean>;
  /** Undefined where nothing is to notify this process. */
  protected abstract newNotifier(options: DatabaseOptions<Names>): N | undefined;

  /** The notifier; undefined before the database is opened, and where the store was told to do without. */
  get notifier(): N | undefined {
    return this.#notifier;
  }

  /**
   * Checks the conditions that no retry mends, and begins to listen for turns. Rejects with `LockConfigurationError`. A
   * database that is away gives a warning, and is checked by the first operation that reaches it.
   */
  async open(given: DatabaseOptions<Names>): Promise<void> {
    this.close();
    this.tidying.start();
    // Of each thing once.
    const warned = new OncePerKey();
    const options = { ...given, warn: (message: string) => warned.isNew(message) && given.warn(message) };
    this.#opened = options;
    this.#check = this.#checkWith(options);
    try {
      await this.#check();
    } catch (error) {
      if (!(error instanceof LockStoreError)) {
        throw error;
      }
      options.warn(`${error.detail} Locked calls fail until then.`);
    }
    if (this.#opened === options) {
      this.#notifier = this.newNotifier(options);
      await this.#notifier?.open?.();
    }
  }

  probe(): Promise<Probe> {
    return probe(() => this.askState({ key: '', limitMs: PROBE_MS }));
  }

  /** Refuses all operations that are sent later: the pool of the database may live on. */
  close(): void {
    this.tidying.stop();
    this.#opened = undefined;
    this.#check = async () => {
      throw new LockConfigurationError(`${this.dialect.store} was closed. Make a new one for new locks.`);
    };
    this.#notifier?.close();
    this.#notifier = undefined;
  }

  /**
   * Runs one check at a time, in the context of no call: checks of many operations would take each other's connections
   * and time. Once a check has passed, operations go without.
   */
  #checkWith(options: DatabaseOptions<Names>): () => Promise<void> {
    let passing: Promise<void> | undefined;
    const begin = AsyncResource.bind(async (): Promise<void> => {
      try {
        await this.#pass(options);
        if (this.#check === check) {
          this.#check = undefined;
        }
      } finally {
        passing = undefined;
      }
    });
    const check = (): Promise<void> => (passing ??= begin());
    return check;
  }

  /** Checks the server, the tables and the number of the database. */
  async #pass({ keys, number, readOnly, warn }: DatabaseOptions<Names>): Promise<void> {
    const giveUpAt = performance.now() + START_MS.check;
    const limit = (): StatementLimit => ({ key: '', limitMs: Math.min(START_MS.query, Math.max(0, giveUpAt - performance.now())) });
    await this.checkServer(warn, limit);
    const row = keys.numberRow;
    const known = readOnly ? undefined : await this.calls.callUnchecked(this.operations.NUMBERED, { key: row, number }, limit());
    if (known !== undefined && known !== number) {
      throw new LockConfigurationError(
        `${this.dialect.store}: pool ${number} leads to a database that other processes know as ${known}. Pass the same databases in the same order ` +
          `everywhere. Where the list was changed, stop all processes first and then run ${this.forgetting(row)} in each of them.`,
      );
    }
  }
}
