// Locked calls of a process that was quiet: garbage was collected while no call was on its way, and V8 threw code away.
import { alternate } from '../alternate.mjs';
import { againstBest, figuresOf, linesOf, withCallers } from '../calls.mjs';
import { atMost } from '../line.mjs';
import { PLACES } from '../places.mjs';
import { ALL_PEERS, floor, PEERS, thisLibrary } from '../subjects/index.mjs';

export const cold = {
  name: 'cold',
  run: ({ proxy, sizes }) =>
    withCallers([thisLibrary, floor, ...ALL_PEERS], ['--expose-gc'], async (callers) => {
      callers.forEach((caller) => caller.moveTo(PLACES.apart));
      const pair = figuresOf(await ask(callers, 'oneCaller', sizes.cold.near), 'micros');
      callers.forEach((caller) => caller.moveTo(PLACES.anywhere));
      const far = figuresOf(await ask(callers, 'oneCaller', sizes.cold.far, ({ port }) => proxy.portTo(port)), 'micros');
      const many = await ask(callers, 'manyCallers', sizes.cold.manyCallers);
      const [rate, server, client] = ['rate', 'server', 'client'].map((figure) => figuresOf(many, figure));
      const p99 = figuresOf(await ask(callers, 'arrivals', sizes.cold.arrivals), 'p99');
      return [
        ...linesOf('cold pair', pair, 'µs', (ratio) => atMost(ratio, 1.3)),
        ...linesOf('cold pair +1 ms', far, 'µs'),
        ...linesOf('cold parallel', rate, 'pairs/s'),
        againstBest('cold parallel to peers', rate, 'pairs/s', PEERS),
        ...linesOf("cold server's CPU", server, 'µs'),
        ...linesOf("cold client's CPU", client, 'µs'),
        ...linesOf('cold arrivals: p99', p99, 'ms'),
        againstBest('cold arrivals: p99 to peers', p99, 'ms', PEERS),
      ];
    }),
};

/** All subjects take turns. Before each, the server is cleared, garbage is collected, and `leadIn` runs uncounted. */
async function ask(callers, question, { repeats, warmUp, leadIn, task }, portOf = ({ port }) => port) {
  for (const caller of callers.values()) {
    await caller.connect(await portOf(caller.server));
    await caller.ask(question, warmUp);
  }
  return alternate([...callers.keys()], repeats, async (subject) => {
    const caller = callers.get(subject);
    await caller.server.client.flushall();
    await caller.collectGarbage();
    await caller.ask(question, leadIn);
    return caller.ask(question, task);
  });
}
