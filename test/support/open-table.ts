import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import type { KeyState, QueuedPlace } from '../../lib/kit/key-state.js';
import type { LockTable } from '../../lib/kit/lock-table.js';
import type { Claim, SharedHold, SharedHolds } from '../../lib/kit/shared-holds.js';
import { bundle, type Edit } from './defective.js';

/** The private fields of the table, as they are named once `#` is replaced. */
export interface OpenTable extends LockTable {
  $keys: Map<string, OpenKey>;
  $done: { $recent: Map<string, { answer: boolean; until: number }>; $changesAt: number };
  $fence: number;
}

export interface OpenKey extends KeyState {
  $queue: Map<string, QueuedPlace>;
  $grant: KeyState['grant'];
  $turn: KeyState['turn'];
  $shared: OpenShared | undefined;
  $queueEndsAt: number;
}

export interface OpenShared extends SharedHolds {
  $holds: Map<string, SharedHold>;
  $claims: Map<string, Claim>;
  $fence: number;
}

export interface Library {
  readonly LockTable: new (...args: ConstructorParameters<typeof LockTable>) => OpenTable;
  readonly KeyState: new (...args: ConstructorParameters<typeof KeyState>) => OpenKey;
  readonly SharedHolds: new (...args: ConstructorParameters<typeof SharedHolds>) => OpenShared;
}

const ENTRY = `
export { LockTable } from './kit/lock-table.js';
export { KeyState } from './kit/key-state.js';
export { SharedHolds } from './kit/shared-holds.js';
`;

/** The lock table of the library, with `edits` made to it, that can be put into any state and read. */
export async function openLibrary(edits: readonly Edit[] = []): Promise<Library> {
  // Private fields have to be copied and compared by those who use the table.
  const code = (await bundle(ENTRY, [], edits)).replaceAll(/#(?=[a-zA-Z])/g, () => '$');
  const module = { exports: {} as Library };
  // oxlint-disable-next-line typescript/no-implied-eval
  new Function('require', 'module', 'exports', code)(createRequire(resolve('package.json')), module, module.exports);
  return module.exports;
}
