// What one locked call takes where nobody contends, next to the least that has to be sent.
import { againstLowest, figuresOf, linesOf } from '../calls.mjs';
import { atMost } from '../line.mjs';
import { ALL_PEERS } from '../subjects/index.mjs';

export const pair = {
  name: 'pair',
  async run({ callers, proxy, sizes }) {
    const near = figuresOf(await callers.ask('oneCaller', sizes.pair.near), 'micros');
    const far = figuresOf(await callers.ask('oneCaller', sizes.pair.far, { port: proxy.port }), 'micros');
    return [
      ...linesOf('pair', near, 'µs', (ratio) => atMost(ratio, 1.3)),
      againstLowest('pair', near, 'µs', ALL_PEERS),
      ...linesOf('pair +1 ms', far, 'µs', (ratio) => atMost(ratio, 1.04)),
    ];
  },
};
