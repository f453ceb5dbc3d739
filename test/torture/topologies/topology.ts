import type { LockStore } from '../../../lib/core/seam/lock-store.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import type { FaultName } from '../faults.js';
import type { HistoryFile } from '../history.js';
import type { Step } from '../plan.js';
import type { WorkerSource } from '../worker-options.js';

/** The faults that can happen to the processes of a run, their connections and keys, whatever the servers are. */
export const FAULTS_ANYWHERE = [
  'pause', 'crash', 'block', 'wall', 'listener', 'sleep',
  'cut', 'killOnReply', 'killOnRelease', 'dropReplies', 'blackhole', 'refuse', 'latency', 'mute', 'deafen',
  'delete', 'force', 'forceOld',
  'stall',
] as const satisfies readonly FaultName[]; // prettier-ignore

/** The lock that a fault took from its holder: the lock of that fence, of one that nobody knows, or nothing. */
export interface Taken {
  fence?: number;
  outcome?: 'nothing';
}

/** Servers that keep the locks of a run. */
export interface Topology {
  readonly faults: readonly FaultName[];
  /** How many servers may be away at once with nobody hindered. */
  readonly spare: number;
  /** How many keys the calls contend for, where not for all. */
  readonly busyKeys?: number;
  /** Whether its stores keep the order of those who wait. */
  readonly keepsOrder: boolean;
  /** Whether its stores let readers in beside each other, and have semaphores. */
  readonly isShared: boolean;
  /** A text that only the commands that release a hold contain. */
  readonly releaseText: string | readonly string[];
  /** A text that only the commands that renew contain. */
  readonly renewText: string | readonly string[];
  /** How a worker reaches the servers, the proxies in between, and how far its wall clock is ahead. */
  link(): Promise<{ readonly source: WorkerSource; readonly proxies: readonly TcpProxy[]; readonly wallMs?: number }>;
  /** A store without proxies, for looking at the locks. */
  store(): LockStore;
  /** Which servers a fault of links or servers strikes, by their numbers; where it is left out, all. */
  reach?(step: Step): readonly number[];
  /**
   * Strikes the servers, or erases a key; resolves when the fault is over. `begun` is called when servers that were
   * killed are there.
   */
  strike(step: Step, begun?: () => void): Promise<Taken | void>;
  /** Takes a lock away behind its holder's back, as an administrator can. */
  delete(key: string): Promise<Taken>;
  /** Locks that would outlive a crash. */
  withoutExpiry(): Promise<string[]>;
  /** Whatever is stored that should not be, or would stay. */
  orphans(): Promise<string[]>;
  /** Writes down what only its servers can tell. */
  record?(write: HistoryFile['write']): void;
  /** Asks each server whether it answers. */
  pings(): readonly (() => Promise<unknown>)[];
  stop(): Promise<void>;
}
