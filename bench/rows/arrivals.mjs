// What an application sees: locked calls that begin at a fixed rate, whether or not those before have ended.
import { againstLowest, figuresOf, linesOf } from '../calls.mjs';
import { atMost } from '../line.mjs';
import { ALL_PEERS } from '../subjects/index.mjs';

export const arrivals = {
  name: 'arrivals',
  async run({ callers, sizes }) {
    const results = await callers.ask('arrivals', sizes.arrivals);
    const row = `${sizes.arrivals.task.rate} arrivals/s`;
    const [p50, p99] = [figuresOf(results, 'p50'), figuresOf(results, 'p99')];
    return [
      ...linesOf(`${row}: p50`, p50, 'ms'),
      ...linesOf(`${row}: p99`, p99, 'ms'),
      againstLowest(`${row}: p99`, p99, 'ms', ALL_PEERS, (ratio) => atMost(ratio, 1.2)),
    ];
  },
};
