import { setTimeout as sleep } from 'node:timers/promises';
import { THIS_PROCESS } from '../../../lib/core/words/caller.js';
import type { HoldRecord, LockStore } from '../../../lib/core/seam/lock-store.js';
import { startUpHold } from '../../../lib/redis/server-check.js';
import { shownMs } from '../age.js';
import { failure, ok, warning, type Finding } from './finding.js';

/**
 * The key of the doctor. It has the same name in each run: a database keeps a row for each key, and a Cluster a counter
 * for each slot.
 */
export const OWN_KEY = 'nestjs-distributed-lock:doctor';

/** For how long another doctor is waited for, in milliseconds: longer than the lease of one that was killed. */
const BUSY_MS = 5_000;
const AGAIN_MS = 50;

/** The operations by which the doctor tries to write. */
export type Writes = Pick<LockStore, 'acquire' | 'release'>;

/**
 * Whether a lock can be had: one of the doctor's own is acquired, and released. `held` says what holds up writes that
 * are not answered.
 */
export async function writesFinding(store: Writes, name: string, held: string, key = OWN_KEY): Promise<Finding> {
  const subject = `${name}: writes`;
  const hold = { ...startUpHold(key), by: `${THIS_PROCESS} doctor` };
  const startedAt = performance.now();
  try {
    if (!(await isGranted(store, hold))) {
      return warning(subject, `They could not be tried: another doctor has had "${key}" for ${shownMs(BUSY_MS)}. Run it again.`);
    }
    const ms = performance.now() - startedAt;
    await store.release(hold);
    return ok(subject, `A lock was acquired within ${shownMs(ms)}, and released.`);
  } catch (error) {
    // It may have been granted all the same. What is not released ends with its lease.
    await store.release(hold).catch(() => undefined);
    const failed = failure(subject, error);
    return { ...failed, text: explained(failed.text, held) };
  }
}

/** The finding about writes of a store of one database, in which each key lives. */
export async function databaseWritesFinding(store: LockStore, prefix: string, name: string, held: string): Promise<Finding> {
  try {
    await store.open?.({ prefix, readOnly: true, warn: () => undefined });
    return await writesFinding(store, name, held);
  } finally {
    await store.close();
  }
}

async function isGranted(store: Writes, hold: HoldRecord): Promise<boolean> {
  const giveUpAt = performance.now() + BUSY_MS;
  for (;;) {
    const { fence } = await store.acquire(hold);
    if (fence !== undefined || performance.now() > giveUpAt) {
      return fence !== undefined;
    }
    await sleep(AGAIN_MS);
  }
}

/**
 * The text of an error, and what to do. A server that does not answer here has answered what was read, so it can be
 * reached.
 */
function explained(text: string, held: string): string {
  const [, next = HELD.test(text) ? held : ''] = CAUSES.find(([pattern]) => pattern.test(text)) ?? [];
  return next === '' ? text : `${text.replace(/ Make sure .*$| The call may be repeated .*$/, '')} ${next}`;
}

const HELD = /no reply within|lock timeout|has locked/;
const CAUSES: readonly (readonly [RegExp, string])[] = [
  [/MISCONF/, 'Its disk is full or fails: see its log, and make room.'],
  [/NOREPLICAS/, 'Start its replicas, or lower its min-replicas-to-write.'],
];
