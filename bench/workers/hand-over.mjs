// One of two processes: holds keys until it is told to release them, or waits for keys that the other one holds.
import { machineMs } from '../numbers.mjs';
import { serve } from '../serve.mjs';
import { close, connect, connectionOf } from './connections.mjs';

const holds = new Map();

serve({
  connect,
  close,

  async hold({ key, ...task }) {
    holds.set(key, await connectionOf(task).acquire(key));
  },

  async release({ key, ...task }) {
    const held = holds.get(key);
    holds.delete(key);
    const releasedAt = machineMs();
    await connectionOf(task).release(held);
    return releasedAt;
  },

  /** Null where the caller gave up. */
  async wait({ key, ...task }) {
    const connection = connectionOf(task);
    let held;
    try {
      held = await connection.acquire(key);
    } catch {
      return null;
    }
    const startedAt = machineMs();
    await connection.release(held);
    return startedAt;
  },
});
