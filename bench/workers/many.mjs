// One process that holds very many leases. It has the process to itself: the delay of the event loop is measured.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { connected } from '../connected.mjs';
import { sentCommands, sentPings } from '../sent-commands.mjs';
import { serve } from '../serve.mjs';
import { thisLibrary } from '../subjects/index.mjs';

const AT_ONCE = 64;

serve({
  many: ({ port, ...task }) => connected([thisLibrary], port, {}, (connections) => hold(connections.get(thisLibrary).locks, task)),
});

async function hold(locks, { leases, ttlMs, holdMs }) {
  const held = [];
  let next = 0;
  async function acquireSome() {
    while (next < leases) {
      const key = `many:${next}`;
      next += 1;
      held.push(await locks.acquire(key, { ttl: ttlMs }));
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, acquireSome));
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const rounds = Math.floor(holdMs / (ttlMs / 3));
  const before = sentCommands() - sentPings();
  delay.enable();
  await sleep((rounds * ttlMs) / 3);
  const commands = sentCommands() - sentPings() - before;
  await sleep(holdMs - (rounds * ttlMs) / 3);
  delay.disable();
  const lost = held.filter((lock) => !lock.isHeld()).length;
  for (let from = 0; from < leases; from += AT_ONCE) {
    await Promise.all(held.slice(from, from + AT_ONCE).map((lock) => lock.release()));
  }
  return { commandsPerRound: commands / rounds, delayMs: delay.percentile(99) / 1e6, lost };
}
