/** One of the servers of a store that has several. */
export interface MemberHealth {
  /** Whether it answered. */
  readonly reachable: boolean;
  /** Whether its votes count; undefined in a store whose servers do not vote. */
  readonly voting?: boolean | undefined;
}

/** What a store finds out about itself. What it cannot tell it leaves out. Nothing here names a host, a key or an owner. */
export interface StoreHealth {
  /** How long the answer of the server took, in milliseconds; of several servers, the slowest answer. */
  readonly latencyMs?: number | undefined;
  /**
   * How far the server's clock is ahead of the clock of this process, in milliseconds; negative where it is behind. It is
   * known up to half of `latencyMs`. Of several servers, the clock that is furthest off.
   */
  readonly clockSkewMs?: number | undefined;
  /** Whether messages of turns reach this process; undefined where it is not to receive any. */
  readonly hearsTurns?: boolean | undefined;
  /** Whether as many replicas confirm what is written as have to; undefined where none has to. */
  readonly replicasConfirm?: boolean | undefined;
  /** The servers, in the order in which they were given; undefined for a store of one server. */
  readonly members?: readonly MemberHealth[] | undefined;
  /** How many votes a grant needs; undefined in a store whose servers do not vote. */
  readonly majority?: number | undefined;
  /** Whether the server may evict locks where its memory is full; of several servers, whether any may. */
  readonly evicts?: boolean | undefined;
}
