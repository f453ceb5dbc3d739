import * as common from '@nestjs/common';
import * as asyncHooks from 'node:async_hooks';
import * as crypto from 'node:crypto';
import * as diagnosticsChannel from 'node:diagnostics_channel';
import * as events from 'node:events';
import * as os from 'node:os';
import * as util from 'node:util';
import * as rxjs from 'rxjs';
import type { outsideLocks } from '../../../lib/core/calls/call-tree.js';
import type { TransactionScope } from '../../../lib/core/transactions/transaction-scope.js';
import type { currentLock } from '../../../lib/nest/current-lock.js';
import type { enterTickets } from '../../../lib/nest/current-tickets.js';
import type { LockService } from '../../../lib/nest/lock.service.js';
import type { lockedGenerator } from '../../../lib/nest/methods/locked-generator.js';
import type { LockedMethod } from '../../../lib/nest/methods/locked-method.js';
import type { lockedObservable } from '../../../lib/nest/methods/locked-observable.js';
import type { MethodOptions } from '../../../lib/nest/methods/method-options.js';
import type { TransactionWarning } from '../../../lib/nest/methods/transaction-warning.js';
import type { Batches } from '../../../lib/kit/batches.js';
import type { LockTable } from '../../../lib/kit/lock-table.js';
import type { Rechecks } from '../../../lib/kit/rechecks.js';
import { bundle, type Edit } from '../../support/defective.js';

const ENTRY = `
export { LockService } from './nest/lock.service.js';
export { Batches } from './kit/batches.js';
export { LockTable } from './kit/lock-table.js';
export { Rechecks } from './kit/rechecks.js';
export { LockStoreError } from './core/words/errors.js';
export { outsideLocks } from './core/calls/call-tree.js';
export { TransactionScope } from './core/transactions/transaction-scope.js';
export { currentLock } from './nest/current-lock.js';
export { enterTickets } from './nest/current-tickets.js';
export { lockedGenerator } from './nest/methods/locked-generator.js';
export { LockedMethod } from './nest/methods/locked-method.js';
export { lockedObservable } from './nest/methods/locked-observable.js';
export { MethodOptions } from './nest/methods/method-options.js';
export { TransactionWarning } from './nest/methods/transaction-warning.js';
`;
const MODULES: Readonly<Record<string, unknown>> = {
  '@nestjs/common': common,
  'node:crypto': crypto,
  'node:diagnostics_channel': diagnosticsChannel,
  'node:events': events,
  'node:os': os,
  'node:util': util,
  rxjs,
};
/** One for all copies: Node asks every storage there is at each promise. */
const CALLS = new asyncHooks.AsyncLocalStorage();
const TRANSACTIONS = new asyncHooks.AsyncLocalStorage();

/** The replacements of Node's timers and chance for the library. */
export interface Surroundings {
  setTimeout(run: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
  random(): number;
}

export interface Library {
  readonly LockService: typeof LockService;
  readonly Batches: typeof Batches;
  readonly LockTable: typeof LockTable;
  readonly Rechecks: typeof Rechecks;
  readonly LockStoreError: new (message: string, key: string, details: { unknown: boolean }) => Error;
  readonly outsideLocks: typeof outsideLocks;
  readonly TransactionScope: typeof TransactionScope;
  readonly currentLock: typeof currentLock;
  readonly enterTickets: typeof enterTickets;
  readonly lockedGenerator: typeof lockedGenerator;
  readonly LockedMethod: typeof LockedMethod;
  readonly lockedObservable: typeof lockedObservable;
  readonly MethodOptions: typeof MethodOptions;
  readonly TransactionWarning: typeof TransactionWarning;
}

/** Makes one copy of the library for each call, in surroundings of its own: as many processes have. */
export type LoadLibrary = (surroundings: Surroundings) => Library;

/** Bundles the sources of the library, with `edits` made to them. */
export async function buildLibrary(edits: readonly Edit[] = []): Promise<LoadLibrary> {
  const code = await bundle(ENTRY, ['@nestjs/common', 'rxjs'], edits);
  return (surroundings) => load(code, surroundings);
}

function load(code: string, { setTimeout, clearTimeout, random }: Surroundings): Library {
  const module = { exports: {} as Library };
  const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
  const modules: Readonly<Record<string, unknown>> = {
    ...MODULES,
    'node:timers/promises': { setTimeout: sleep },
    'node:async_hooks': { ...asyncHooks, AsyncLocalStorage: sharedStorages() },
  };
  const required = (name: string): unknown => modules[name];
  const chance = Object.defineProperties({}, { ...Object.getOwnPropertyDescriptors(Math), random: { value: random } });
  // A handle may be released twice here, and nobody reads the warnings.
  const quiet = { pid: 1, emitWarning: () => undefined, nextTick: process.nextTick };
  const names = ['require', 'module', 'exports', 'setTimeout', 'clearTimeout', 'Math', 'process'];
  // Of this realm, so that a promise of a body is a promise to the library.
  // oxlint-disable-next-line typescript/no-implied-eval
  new Function(...names, code)(required, module, module.exports, setTimeout, clearTimeout, chance, quiet);
  return module.exports;
}

/** The first storage of a copy follows calls; one for each scope of transactions comes later. */
function sharedStorages(): new () => object {
  let storage: object = CALLS;
  return class {
    constructor() {
      const shared = storage;
      storage = TRANSACTIONS;
      return shared;
    }
  };
}
