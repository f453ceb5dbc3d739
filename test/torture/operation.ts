/** The arguments of an attempt to get a lock. */
export interface Asked {
  readonly owner: string;
  readonly hold: string;
  /** How many fences it reserves. */
  readonly fences: number;
  readonly ttl: number;
}

/**
 * One operation of a store, as its caller saw it: one line of `operations.ndjson`. Times are milliseconds of `now()`.
 *
 * The first line of the file is `{"version":1,"table":"one"}`: the history of one table; or of a `replicated` table,
 * which a failover may set back; or `none`, since each server of a quorum has a table of its own. A history of `none`
 * is written and not replayed.
 *
 * A history is sound where, for each key, all operations with a known outcome can be put in an order in which each is
 * carried out between its `invoke` and its `return`, and `LockTable` (`lib/kit/lock-table.ts`) gives each
 * answer. An operation with an unknown outcome is carried out or not, up to four seconds after it was given up. A place
 * is skipped only while its process is `away` or its store closed. After `forget` with `anything` a key is judged again
 * from its next grant, and its queue from the first grant to somebody who had not queued. On a replicated table an
 * attempt that failed may have been granted and withdrawn.
 *
 * | op | what it tells |
 * |---|---|
 * | `acquire`, `join`, `renew`, `release` | the operation of a store; one `renew` for each hold |
 * | `exchange`, `leave`, `force` | the operation of a store |
 * | `close` | the store was closed: nobody receives its messages |
 * | `away` | its process, or all, may not have received messages between `invoke` and `return` |
 * | `forget` | the servers forgot a `lock`, a `row` or `everything`, or nobody knows their state: `anything` |
 */
export interface Operation {
  readonly op: 'acquire' | 'join' | 'renew' | 'release' | 'exchange' | 'leave' | 'force' | 'close' | 'away' | 'forget';
  readonly process: string;
  /** Which store of the process it was. */
  readonly store?: string | undefined;
  /** Undefined for all keys. */
  readonly key?: string | undefined;
  readonly owner?: string | undefined;
  readonly hold?: string | undefined;
  readonly fence?: number | undefined;
  readonly fences?: number | undefined;
  readonly ttl?: number | undefined;
  readonly lingers?: boolean | undefined;
  /** Of a release or an exchange: whether a done mark is left. Default: true. */
  readonly unanswered?: boolean | undefined;
  readonly place?: string | undefined;
  /** Of an exchange: who asks for the lock that is released. */
  readonly next?: Asked | undefined;
  readonly overtakes?: boolean | undefined;
  readonly what?: 'lock' | 'row' | 'everything' | 'anything' | undefined;
  readonly invoke: number;
  /** Undefined where it never returned: its process was killed. */
  readonly return?: number | undefined;
  /** `failed`: it is known not to have been carried out. */
  readonly outcome: 'ok' | 'failed' | 'unknown';
  /** Of a join, a renewal, a release or a forced release. */
  readonly answer?: boolean | undefined;
  /** The fence of the grant; undefined where the answer was busy, or not known: see `reply`. */
  readonly granted?: number | undefined;
  /** The outcome of the attempt in an exchange, which may fail by itself. */
  readonly reply?: 'ok' | 'failed' | 'unknown' | undefined;
  /** The rest of the lease of another owner, in milliseconds. */
  readonly remaining?: number | undefined;
}
