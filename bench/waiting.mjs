import { setTimeout as sleep } from 'node:timers/promises';
import { newKeys } from './pairs.mjs';

/** Longer than a measurement takes: leases are not renewed meanwhile. */
const TTL_MS = 600_000;
const MOST_SECONDS = 30;

/** How many statements a second a process sends that waits for so many keys, which another one holds. */
export async function statementsOfWaiting([holder, waiter], statements, { count, measureMs }) {
  const keys = newKeys(count);
  const held = await Promise.all(keys.map((key) => holder.locks.acquire(key, { ttl: TTL_MS })));
  const controller = new AbortController();
  const { signal } = controller;
  const waits = keys.map((key) => waiter.locks.acquire(key, { ttl: TTL_MS, wait: TTL_MS, signal }).catch(() => undefined));
  await settled(statements);
  const rate = await perSecond(statements, measureMs);
  controller.abort();
  await Promise.all([...waits, ...held.map((lock) => lock.release())]);
  return rate;
}

/**
 * Waits until as much is sent in a second as in the second before: processes that have queued ask once more when they
 * can be woken.
 */
export async function settled(statements) {
  let before = await perSecond(statements, 1_000);
  for (let seconds = 0; seconds < MOST_SECONDS; seconds += 1) {
    const rate = await perSecond(statements, 1_000);
    if (Math.abs(rate - before) <= 1 + before / 10) {
      return;
    }
    before = rate;
  }
}

/** How many statements a second the server is sent. */
export async function perSecond(statements, measureMs) {
  const before = await statements();
  const startedAt = performance.now();
  await sleep(measureMs);
  return (((await statements()) - before) * 1_000) / (performance.now() - startedAt);
}
