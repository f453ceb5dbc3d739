/** The lock of one owner at one server. */
export interface StoredVotes {
  readonly owner: string;
  readonly fence: number;
  /** The longest lease asked for. */
  readonly ttlMs: number;
  readonly since: number;
  readonly by: string;
  /** Vote, or hold of a ticket → process; the last to come in is the last. */
  readonly holds: readonly (readonly [string, string])[];
  readonly leftMs: number;
}

/**
 * The data that one server stores: of one key, of its fences, and of its part in the quorum. All times are by the
 * server's clock.
 */
export interface Stored {
  readonly lock: StoredVotes | undefined;
  /** The last fence, or a higher one that a process sent. */
  readonly counter: number | undefined;
  /**
   * The processes that wait: since when, and when they were refused last; and which process had the lock last, since
   * when.
   */
  readonly waiters:
    { readonly waiting: Waiting; readonly last: readonly [string, number] | undefined; readonly leftMs: number } | undefined;
  /** Done marks: the name of a hold or vote → the first answer of its release, and how long the mark stays. */
  readonly done: Readonly<Record<string, { readonly answer: number; readonly leftMs: number }>>;
  /** The server's part in the quorum, and what processes reported, with the time until which it holds. */
  readonly record: Readonly<Record<string, number | string>>;
}

type Waiting = Readonly<Record<string, { readonly since: number; readonly refusedAt: number }>>;
