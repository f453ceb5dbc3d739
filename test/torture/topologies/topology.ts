import type { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import type { RedisServer } from '../../support/redis-server.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import type { FaultName } from '../faults.js';
import type { Step } from '../plan.js';
import type { WorkerSource } from '../worker-options.js';

/** What can happen to the processes of a run, their connections and keys, whatever the servers are. */
export const FAULTS_ANYWHERE = [
  'pause', 'crash', 'block', 'wall',
  'cut', 'killOnReply', 'killOnRelease', 'dropReplies', 'blackhole', 'refuse', 'latency', 'mute', 'deafen',
  'delete', 'force', 'forceOld',
  'stall', 'scriptFlush', 'killClients', 'full',
] as const satisfies readonly FaultName[]; // prettier-ignore

/** Servers that keep the locks of a run. */
export interface Topology {
  readonly faults: readonly FaultName[];
  /** How many replicas confirm a grant. */
  readonly minReplicas: number;
  /** How a worker reaches the servers, and the proxies in between. */
  link(): Promise<{ readonly source: WorkerSource; readonly proxies: readonly TcpProxy[] }>;
  /** A store without proxies, for looking at the locks. */
  store(): RedisLockStore;
  /** Strikes the servers; resolves when the fault is over. */
  strike(step: Step): Promise<void>;
  /** The servers that answer writes. */
  masters(): Promise<readonly RedisServer[]>;
  stop(): Promise<void>;
}
