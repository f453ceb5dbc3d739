/** The place that a fault strikes: two faults never strike the same place of one target at once. */
export type Place = 'process' | 'link' | 'servers' | 'key';

export interface Fault {
  readonly place: Place;
  /** How long it lasts, as a range in leases; 0 for what is over at once. */
  readonly lasts: readonly [least: number, most: number];
  /** How often it is chosen, beside the others. */
  readonly weight: number;
}

/** How many leases the nested call of `nest` asks for. */
export const NESTED_LEASES = 10;

/** Faults of worker processes, of their connections, of keys and of the servers, by name. */
export const FAULTS = {
  /** SIGSTOP of a worker. */
  pause: { place: 'process', lasts: [0.2, 2.5], weight: 5 },
  /** SIGKILL of a worker, which is started again. */
  crash: { place: 'process', lasts: [0.1, 0.5], weight: 2 },
  /** A busy loop in a worker. */
  block: { place: 'process', lasts: [0.1, 1.5], weight: 3 },
  /** The wall clock of a worker jumps. */
  wall: { place: 'process', lasts: [0.2, 1], weight: 3 },
  /** The abort listener of a lost lock, or a subscriber of the library's events, works for most of a lease. */
  listener: { place: 'process', lasts: [2.4, 2.4], weight: 2 },
  /** A nested call asks for a much longer ttl, and the connection is reset at the first renewal. */
  nest: { place: 'process', lasts: [1.6, 1.6], weight: 2 },
  /** The machine of a worker sleeps past its leases, unknown to its monotonic clock, and wakes up without a network. */
  sleep: { place: 'process', lasts: [3.2, 3.2], weight: 1.5 },
  /** Its connections are cut. */
  cut: { place: 'link', lasts: [0, 0], weight: 10 },
  /** Commands arrive, and each first reply cuts its connection. */
  killOnReply: { place: 'link', lasts: [0.05, 0.3], weight: 8 },
  /** Releases arrive, and their replies cut the connection. */
  killOnRelease: { place: 'link', lasts: [0.2, 1], weight: 5 },
  /** Commands arrive, their replies do not. */
  dropReplies: { place: 'link', lasts: [0.05, 0.6], weight: 6 },
  /** Nothing arrives, either way. */
  blackhole: { place: 'link', lasts: [0.1, 1.5], weight: 5 },
  /** New connections are refused, and the old ones cut. */
  refuse: { place: 'link', lasts: [0.1, 1], weight: 4 },
  /** Replies are late. */
  latency: { place: 'link', lasts: [0.2, 1.5], weight: 5 },
  /** Subscribers hear nothing, and everybody takes them for subscribers. */
  mute: { place: 'link', lasts: [0.3, 3], weight: 4 },
  /** There are no subscribers: whoever subscribes is cut off. */
  deafen: { place: 'link', lasts: [1, 6], weight: 3 },
  /** A lock is deleted, or made to end, by an administrator. */
  delete: { place: 'key', lasts: [0, 0], weight: 4 },
  /** A forced release at the fence that the lock has. */
  force: { place: 'key', lasts: [0, 0], weight: 5 },
  /** A forced release at a fence that the lock no longer has: nothing may come of it. */
  forceOld: { place: 'key', lasts: [0, 0], weight: 2 },
  /** SIGSTOP of a server, or of as many of a quorum as may be away. */
  stall: { place: 'servers', lasts: [0.1, 1.2], weight: 3 },
  /** SIGKILL of a server without persistence, and a new start. */
  restart: { place: 'servers', lasts: [0.05, 0.4], weight: 2 },
  flush: { place: 'servers', lasts: [0, 0], weight: 4 },
  scriptFlush: { place: 'servers', lasts: [0, 0], weight: 6 },
  /** CLIENT KILL of all connections of a server, or pg_terminate_backend. */
  killClients: { place: 'servers', lasts: [0, 0], weight: 4 },
  /** No memory is left. */
  full: { place: 'servers', lasts: [0.1, 0.5], weight: 3 },
  /** SIGKILL of a master, until a replica has its place; then it is started again. */
  failover: { place: 'servers', lasts: [5, 5], weight: 0.25 },
  /** SIGSTOP of a master, until a replica has its place; then it goes on. */
  depose: { place: 'servers', lasts: [5, 5], weight: 0.25 },
  /** A master loses its replicas, and is killed before they have what it wrote since. */
  isolate: { place: 'servers', lasts: [5, 5], weight: 0.25 },
  /** The slot of a key moves to another master. */
  reshard: { place: 'servers', lasts: [0, 0], weight: 5 },
  /** SIGSTOP of more servers of a quorum than may be away. */
  outage: { place: 'servers', lasts: [0.2, 1.5], weight: 1.5 },
  /** SIGKILL of some servers of a quorum, which start again without their data, until they count again. */
  forget: { place: 'servers', lasts: [4.2, 4.6], weight: 1.5 },
  /** SIGKILL of some servers of a quorum, which come back with the data of some time before, until they count again. */
  snapshot: { place: 'servers', lasts: [4.9, 5.3], weight: 1.5 },
  /**
   * SIGKILL of all servers of a quorum while a lock is held, which start again without their data, and a process that
   * starts then. Lasts until all count again.
   */
  rebirth: { place: 'servers', lasts: [5, 5.4], weight: 1 },
  /** SIGKILL of a server that has written down what it keeps, and a new start. */
  recover: { place: 'servers', lasts: [0.8, 1.2], weight: 2 },
  /** The row of a key is deleted by an administrator, and with it the last fence and the queue. */
  erase: { place: 'key', lasts: [0, 0], weight: 4 },
  /** The row of a key is locked by somebody's open transaction. */
  lockRow: { place: 'key', lasts: [0.5, 1.5], weight: 3 },
  /** Commits wait for a standby or a replica that is away. */
  standby: { place: 'servers', lasts: [2.5, 3.5], weight: 1 },
  /** A server takes no writes. */
  readOnly: { place: 'servers', lasts: [0.3, 1], weight: 2 },
} satisfies Record<string, Fault>;

/** The keys whose rows `lockRow` locks: its target, and one that somebody has for longer than a lease. */
export function lockedRowsOf(key: string): readonly [target: string, held: string] {
  return [key, `row ${key}`];
}

export type FaultName = keyof typeof FAULTS;
