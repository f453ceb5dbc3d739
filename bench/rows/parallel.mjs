// How many locked calls a process gets through with many callers that do not contend.
import { figuresOf, linesOf, ratioOf } from '../calls.mjs';
import { atLeast } from '../line.mjs';
import { PEERS } from '../subjects/index.mjs';

export const parallel = {
  name: 'parallel',
  async run({ callers, sizes }) {
    const rates = figuresOf(await callers.ask('manyCallers', sizes.manyCallers), 'rate');
    const best = PEERS.reduce((first, peer) => (ratioOf(rates, peer, first) > 1 ? peer : first));
    return linesOf('parallel', rates, 'pairs/s', (ratio) => atLeast(ratio, 1.1), { subject: best, name: 'best peer' });
  },
};
