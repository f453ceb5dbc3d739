// One of several processes whose callers contend, and start together with those of the others.
import { setTimeout as sleep } from 'node:timers/promises';
import { machineMs } from '../numbers.mjs';
import { countRoundTrips, sentCommands } from '../sent-commands.mjs';
import { serve } from '../serve.mjs';
import { close, connect, connectionOf } from './connections.mjs';

serve({
  connect,
  close,

  /** `lanes` has the keys that each caller wants, one after the other. */
  async contend({ lanes, startAt, sectionMs, ...task }) {
    const connection = connectionOf(task);
    await sleep(startAt - machineMs());
    const before = sentCommands();
    const roundTrips = countRoundTrips();
    const turns = await Promise.all(lanes.map((keys) => callEach(connection, keys, sectionMs)));
    return { turns: turns.flat(), commands: sentCommands() - before, roundTrips: roundTrips() };
  },
});

async function callEach(connection, keys, sectionMs) {
  const turns = [];
  for (const key of keys) {
    turns.push(await call(connection, key, sectionMs));
  }
  return turns;
}

/** Null where the caller failed. */
async function call(connection, key, sectionMs) {
  const calledAt = machineMs();
  let held;
  try {
    held = await connection.acquire(key);
  } catch {
    return null;
  }
  const startedAt = machineMs();
  await sleep(sectionMs);
  const endedAt = machineMs();
  await connection.release(held);
  return { key, calledAt, startedAt, endedAt, releasedAt: machineMs() };
}
