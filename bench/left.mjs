// Measures the keys and bytes that calls leave in the server, and its CPU time to get rid of them.
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 500;

/**
 * By subject: the keys and the bytes that each call left, and the server's CPU time for it until none of the keys is
 * left to expire, in microseconds.
 */
export async function leftOf(callers, { idleMs, restMs, ...task }) {
  const subjects = [...callers.keys()];
  const eachOf = async (work) => new Map(await Promise.all(subjects.map(async (subject) => [subject, await work(callers.get(subject))])));
  await eachOf(({ server }) => settle(server, restMs));
  const idle = await eachOf(async ({ server }) => {
    const before = await server.cpuSeconds();
    await sleep(idleMs);
    return ((await server.cpuSeconds()) - before) / idleMs;
  });
  const results = new Map();
  for (const [subject, caller] of callers) {
    results.set(subject, await afterCalls(caller, task, idle.get(subject), restMs));
  }
  return results;
}

async function afterCalls({ server, ask }, task, idle, restMs) {
  const before = await server.content();
  const { calls } = await ask('manyCallers', task);
  const after = await server.content();
  const cpuBefore = await server.cpuSeconds();
  const restedMs = await settle(server, restMs, before.expiring);
  const cpu = restedMs > 0 ? (await server.cpuSeconds()) - cpuBefore - idle * restedMs : 0;
  return {
    keys: (after.keys - before.keys) / calls,
    bytes: Math.max(0, after.bytes - before.bytes) / calls,
    server: (Math.max(0, cpu) * 1e6) / calls,
  };
}

/** Waits until no more than so many keys are to expire, or the time is over; how long it took, in milliseconds. */
async function settle(server, restMs, expiring = 0) {
  const start = performance.now();
  let restedMs = 0;
  while ((await server.content()).expiring > expiring && restedMs < restMs) {
    await sleep(POLL_MS);
    restedMs = performance.now() - start;
  }
  return restedMs;
}
