// The garbage that very many pairs leave behind, in the process and in Redis.
import { setTimeout as sleep } from 'node:timers/promises';
import { atMost, line } from '../line.mjs';
import { thisLibrary } from '../subjects/index.mjs';
import { withWorkers } from '../worker.mjs';

export const endless = {
  name: 'endless',
  async run({ server, sizes }) {
    const { restMs, ...task } = sizes.endless;
    await server.client.flushall();
    const grownBy = async (what) => {
      const { grownMb } = await withWorkers('endless', 1, ([worker]) => worker.ask(what, { port: server.port, ...task }), ['--expose-gc']);
      return grownMb;
    };
    const watchedMb = await grownBy('endlessWatched');
    await server.client.flushall();
    const grownMb = await grownBy('endless');
    const { left, afterMs } = await keysLeft(server.client, restMs);
    const note = `${task.pairs} pairs`;
    const rest = `keys besides the fence, ${(afterMs / 1_000).toFixed(1)} s after ${note}`;
    return [
      line('endless', thisLibrary.name, grownMb, 'MB', { note, ...atMost(grownMb, 10) }),
      line('endless with telemetry', thisLibrary.name, watchedMb, 'MB', {
        note: `${note} with traces and metrics`,
        ...atMost(watchedMb, 10),
      }),
      line('endless keys', thisLibrary.name, left, 'keys', { note: rest, ...atMost(left, 0) }),
    ];
  },
};

/** Looks until nothing but the fence is left, or the time is over. */
async function keysLeft(client, restMs) {
  const start = performance.now();
  for (;;) {
    const afterMs = performance.now() - start;
    // KEYS takes long while there are many.
    if ((await client.dbsize()) <= 1 || afterMs >= restMs) {
      const left = (await client.keys('*')).filter((key) => !key.startsWith('lock:fence:'));
      return { left: left.length, afterMs };
    }
    await sleep(250);
  }
}
