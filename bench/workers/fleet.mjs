// One process of the fleet: all its callers want the same key once, and start together with those of the others.
import { setTimeout as sleep } from 'node:timers/promises';
import { machineMs } from '../numbers.mjs';
import { countRoundTrips, sentCommands } from '../sent-commands.mjs';
import { serve } from '../serve.mjs';
import { close, connect, connectionOf } from './connections.mjs';

serve({
  connect,
  close,

  async contend({ key, startAt, callers, sectionMs, ...task }) {
    const connection = connectionOf(task);
    await sleep(startAt - machineMs());
    const before = sentCommands();
    const roundTrips = countRoundTrips();
    const turns = await Promise.all(Array.from({ length: callers }, () => call(connection, key, sectionMs)));
    return { turns, commands: sentCommands() - before, roundTrips: roundTrips() };
  },
});

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
  return { calledAt, startedAt, endedAt, releasedAt: machineMs() };
}
