import * as asyncHooks from 'node:async_hooks';
import * as crypto from 'node:crypto';
import * as events from 'node:events';
import * as os from 'node:os';
import type { LockConfigurationError, LockStoreError } from '../../../lib/core/words/errors.js';
import type { QuorumLockStore } from '../../../lib/quorum/quorum-lock-store.js';
import { bundle, type Edit } from '../../support/defective.js';

const ENTRY = `
export { QuorumLockStore } from './quorum/quorum-lock-store.js';
export { LockConfigurationError, LockStoreError } from './core/words/errors.js';
`;
const SERVER = 'lib/quorum/members/quorum-server.ts';
/** The store is the real one, but for its connections. */
const SIMULATED: readonly Edit[] = [
  [SERVER, "import { RedisConnection } from '../../redis/connection/redis-connection.js';", 'const { RedisConnection } = simulated;'],
  [SERVER, "import { Wakeups } from '../../redis/wakeups.js';", 'const { Wakeups } = simulated;'],
];

export interface SimulatedLibrary {
  readonly QuorumLockStore: typeof QuorumLockStore;
  readonly LockStoreError: typeof LockStoreError;
  readonly LockConfigurationError: typeof LockConfigurationError;
}

/** The replacements of Node's timers, clocks and chance, and of the connections, for the library. */
export interface Surroundings {
  setTimeout(run: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
  random(): number;
  monotonic(): number;
  wall(): number;
  readonly simulated: { readonly RedisConnection: unknown; readonly Wakeups: unknown };
}

/** Makes a copy of the library, as each process has. */
export type LoadLibrary = (surroundings: Surroundings) => SimulatedLibrary;

/** Bundles the quorum store, with `edits` made to the sources. */
export async function buildQuorum(edits: readonly Edit[] = []): Promise<LoadLibrary> {
  const code = await bundle(ENTRY, [], [...SIMULATED, ...edits]);
  return (surroundings) => load(code, surroundings);
}

function load(code: string, { setTimeout, clearTimeout, random, monotonic, wall, simulated }: Surroundings): SimulatedLibrary {
  const module = { exports: {} as SimulatedLibrary };
  const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
  const modules: Readonly<Record<string, unknown>> = {
    'node:async_hooks': asyncHooks,
    'node:crypto': crypto,
    'node:events': events,
    'node:os': os,
    'node:timers/promises': { setTimeout: sleep },
  };
  const required = (name: string): unknown => modules[name];
  const chance = Object.defineProperties({}, { ...Object.getOwnPropertyDescriptors(Math), random: { value: random } });
  const clock = { now: monotonic };
  const date = Object.assign(class extends Date {}, { now: wall });
  const names = ['require', 'module', 'exports', 'setTimeout', 'clearTimeout', 'Math', 'performance', 'Date', 'simulated'];
  // oxlint-disable-next-line typescript/no-implied-eval
  new Function(...names, code)(required, module, module.exports, setTimeout, clearTimeout, chance, clock, date, simulated);
  return module.exports;
}
