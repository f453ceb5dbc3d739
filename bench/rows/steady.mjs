// Locked calls of a busy service: warmed until the figures stand still, and no garbage is collected on demand.
import { againstBest, figuresOf, linesOf, withCallers } from '../calls.mjs';
import { leftOf } from '../left.mjs';
import { atLeast, atMost, line } from '../line.mjs';
import { PLACES } from '../places.mjs';
import { CALLED, PEER_DECORATORS, PEERS } from '../subjects/index.mjs';
import { ask, askOne } from '../warm-calls.mjs';

/** Up to Node 22, AsyncLocalStorage hooks into every promise of a process. */
const [NEW_KEYS_LIMIT, SAME_KEYS_LIMIT] = Number.parseInt(process.versions.node, 10) >= 24 ? [1.3, 1.1] : [1.5, 1.3];

export const steady = {
  name: 'steady',
  run: ({ proxy, sizes: { steady: sizes } }) =>
    withCallers(CALLED, [], async (callers) => {
      const fresh = await ask(callers, 'manyCallers', sizes.newKeys);
      const again = await ask(callers, 'manyCallers', sizes.sameKeys);
      const near = await askOne(callers, PLACES.apart, sizes.near);
      const together = await askOne(callers, PLACES.together, sizes.near);
      const far = await ask(callers, 'oneCaller', sizes.far, ({ port }) => proxy.portTo(port));
      const arrivals = await ask(callers, 'arrivals', sizes.arrivals);
      return [
        ...ofMany('new keys', fresh, { server: 1.4, client: NEW_KEYS_LIMIT, rate: 0.75 }),
        againstBest('new keys to peers', figuresOf(fresh, 'rate'), 'pairs/s', PEERS, (ratio) => atLeast(ratio, 0.9)),
        againstBest('new keys to decorators', figuresOf(fresh, 'rate'), 'pairs/s', PEER_DECORATORS, (ratio) => atLeast(ratio, 1)),
        ...ofMany('same keys', again, { client: SAME_KEYS_LIMIT }),
        ...linesOf('one caller', figuresOf(near, 'micros'), 'µs', (ratio) => atMost(ratio, 1.12)),
        ...linesOf('one caller, one CPU', figuresOf(together, 'micros'), 'µs'),
        ...linesOf('one caller +1 ms', figuresOf(far, 'micros'), 'µs', (ratio) => atMost(ratio, 1.04)),
        ...linesOf('arrivals: p50', figuresOf(arrivals, 'p50'), 'ms'),
        ...linesOf('arrivals: p99', figuresOf(arrivals, 'p99'), 'ms'),
        againstBest('arrivals: p99 to peers', figuresOf(arrivals, 'p99'), 'ms', PEERS, (ratio) => atMost(ratio, 1.3)),
        ...ofRemains(await leftOf(callers, sizes.left)),
      ];
    }),
};

function ofMany(row, results, { server, client, rate }) {
  return [
    ...linesOf(`${row}: server's CPU`, figuresOf(results, 'server'), 'µs', (ratio) => server && atMost(ratio, server)),
    ...linesOf(`${row}: client's CPU`, figuresOf(results, 'client'), 'µs', (ratio) => atMost(ratio, client)),
    ...linesOf(row, figuresOf(results, 'rate'), 'pairs/s', (ratio) => rate && atLeast(ratio, rate)),
  ];
}

function ofRemains(results) {
  const rows = [
    ['left: keys', 'keys', 'a call'],
    ['left: bytes', 'bytes', 'a call'],
    ["left: server's CPU", 'server', 'µs a call'],
  ];
  return rows.flatMap(([row, figure, unit]) => [...results].map(([subject, left]) => line(row, subject.name, left[figure], unit)));
}
