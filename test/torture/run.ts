import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockStore } from '../../lib/core/seam/lock-store.js';
import { RedisServer } from '../support/redis-server.js';
import { CLAIM_MS, type Evidence } from './checks/check.js';
import { hasLongerLease } from './checks/liveness.js';
import { entriesOf } from './entry.js';
import { NESTED_LEASES, type FaultName } from './faults.js';
import { Fleet } from './fleet.js';
import { HistoryFile, now, readHistories } from './history.js';
import { Nemesis } from './nemesis.js';
import { planFaults, type Step } from './plan.js';
import { Probe } from './probe.js';
import { Registers } from './registers.js';
import { watchServer } from './slow-servers.js';
import { Faults } from './struck.js';
import type { Topology } from './topologies/topology.js';
import { LEASE_MS, type WorkerKeys } from './worker-options.js';

const WORKERS = 4;
/** Names with what could be mistaken for a name of the store's own. */
const KEYS = {
  busy: ['a', '{a}', '{a}:queue', 'account:45', 'é%', ...Array.from({ length: 13 }, (_, at) => `account ${at}`)],
  quiet: ['quiet', 'lock:quiet'],
  led: 'leader',
  shelves: ['shelf', '{shelf}:in', 'shelf R'],
  semaphores: ['erp', 'erp P3', 'claim:erp'],
};

export interface RunOptions {
  readonly topology: Topology;
  readonly seconds: number;
  readonly seed: number;
  readonly faults: readonly FaultName[];
  /** Deliberate defects, as `test/support/typescript-hooks.mjs` takes them. */
  readonly edits?: readonly object[];
}

export interface RunResult {
  readonly folder: string;
  readonly plan: readonly Step[];
  readonly evidence: Evidence;
}

function keysOf({ busyKeys, isShared }: Topology): WorkerKeys {
  return { ...KEYS, busy: KEYS.busy.slice(0, busyKeys), ...(isShared ? {} : { shelves: [], semaphores: [] }) };
}

function allKeysOf(topology: Topology): string[] {
  const { busy, quiet, led, shelves, semaphores } = keysOf(topology);
  return [...busy, ...quiet, led, ...shelves, ...semaphores];
}

/** The plan of a run, made from its seed. */
export function planOf({ topology, seconds, seed, faults }: RunOptions): Step[] {
  const allowed = faults.filter((fault) => topology.faults.includes(fault));
  return planFaults({ seed, ms: seconds * 1_000, leaseMs: LEASE_MS, faults: allowed, workers: workerNames(), keys: allKeysOf(topology) });
}

/** Lets workers use locks while faults strike, and gathers what they wrote down. Stops the topology. */
export async function run(options: RunOptions): Promise<RunResult> {
  const { topology, seed, edits = [] } = options;
  const keys = allKeysOf(topology);
  const folder = mkdtempSync(join(tmpdir(), 'lock-torture-'));
  const plan = planOf(options);
  const server = await RedisServer.start();
  const registers = new Registers(server.url);
  const store = topology.store();
  if ((store.turns !== undefined) !== topology.keepsOrder) {
    throw new Error(`The topology says keepsOrder: ${topology.keepsOrder}, and its store says otherwise. Correct the topology.`);
  }
  if ((store.shared === true && store.permits === true) !== topology.isShared) {
    throw new Error(`The topology says isShared: ${topology.isShared}, and its store says otherwise. Correct the topology.`);
  }
  const history = new HistoryFile(folder, 'nemesis');
  const fleet = new Fleet(folder, JSON.stringify(edits));
  let isOver = false;
  try {
    // From the start: the workers that start later keep the machine busy while the first make calls.
    for (const [at, ping] of topology.pings().entries()) {
      const slow = (since: number): void => history.write({ op: 'stall', phase: 'info', servers: [at], since });
      void watchServer(ping, slow, () => isOver);
    }
    await Promise.all(
      workerNames().map(async (name, at) => {
        const { source, proxies, wallMs = 0 } = await topology.link();
        const own = { seed: seed + 1_000 * at, source, registers: server.url, folder, keys: keysOf(topology), leaseMs: LEASE_MS, wallMs };
        await fleet.add(name, own, proxies);
      }),
    );
    await store.open?.({ prefix: 'lock', warn: () => undefined });
    topology.record?.((event) => isOver || history.write(event));
    await Promise.all([new Nemesis(fleet, topology, store, history).run(plan), sleep(options.seconds * 1_000)]);
    const leftovers = await end(fleet, topology, store);
    const { failures } = fleet;
    const values = new Map(await Promise.all(keys.map(async (key) => [key, await registers.read(key)] as const)));
    const all = readHistories(folder);
    const entries = entriesOf(all);
    const evidence = {
      history: all,
      entries,
      faults: new Faults(all, topology.spare),
      leaseMs: LEASE_MS,
      keepsOrder: topology.keepsOrder,
      // Some faults need keys of their own.
      keys: [...new Set([...keys, ...entries.map(({ key }) => key)])],
      registers: values,
      leftovers,
      failures,
    };
    return { folder, plan, evidence };
  } finally {
    isOver = true;
    history.close();
    registers.close();
    await store.close();
    await Promise.all([server.stop(), topology.stop()]);
  }
}

/**
 * Ends the calls; answers which keys could not be had, or are still there, a lease and a claim window after the last
 * fault and the last call.
 */
async function end(fleet: Fleet, topology: Topology, store: LockStore): Promise<string[]> {
  let endedAt = Infinity;
  const stopped = fleet.stop().then(() => (endedAt = now()));
  await sleep(LEASE_MS + CLAIM_MS);
  // Before anybody looks at them: whoever finds a lock without an expiry gives it one.
  const leftovers = await topology.withoutExpiry();
  const { semaphores } = keysOf(topology);
  const probe = new Probe(store, () => endedAt);
  await Promise.all([
    stopped,
    ...allKeysOf(topology).map(async (key) =>
      leftovers.push(
        ...(await (semaphores.includes(key) ? stopped.then(() => probe.problemsOfSemaphore(key)) : probe.problemsOfLock(key))),
      ),
    ),
  ]);
  const orphans = await topology.orphans();
  // Only a longer lease is waited for. What else is left counts at the first look.
  let longer = orphans.filter(hasLongerLease);
  while (longer.length > 0 && now() < endedAt + NESTED_LEASES * LEASE_MS) {
    await sleep(100);
    longer = (await topology.orphans()).filter(hasLongerLease);
  }
  return [...leftovers, ...orphans.filter((text) => !hasLongerLease(text)), ...longer];
}

function workerNames(): string[] {
  return Array.from({ length: WORKERS }, (_, at) => `w${at + 1}`);
}
