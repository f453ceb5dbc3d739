import { setTimeout as sleep } from 'node:timers/promises';

/**
 * The time from a release in one process to the section in another process that waits, for each key; null where the
 * waiter gave up.
 */
export async function handOvers([holder, waiter], task, keys) {
  const times = [];
  for (const key of keys) {
    await holder.ask('hold', { ...task, key });
    const waiting = waiter.ask('wait', { ...task, key });
    // At no particular moment of a poller's pause, and before one with default settings gives up.
    await sleep(50 + Math.random() * 200);
    const releasedAt = await holder.ask('release', { ...task, key });
    const startedAt = await waiting;
    times.push(startedAt === null ? null : startedAt - releasedAt);
  }
  return times;
}
