// A process of its own, so that nothing but the decorators has shaped the code that is timed.
import { alternate } from '../alternate.mjs';
import { connected } from '../connected.mjs';
import { PlainBalance } from '../decorated.mjs';
import { median } from '../numbers.mjs';
import { newKeys } from '../pairs.mjs';
import { serve } from '../serve.mjs';
import { DECORATORS, ourDecorator } from '../subjects/decorators.mjs';

serve({
  /** What each decorator adds to a call, in microseconds. */
  measure: ({ port, repeats, calls, peerCalls }) =>
    connected(DECORATORS, port, {}, async (connections) => {
      const plain = new PlainBalance();
      const results = await alternate(DECORATORS, repeats + 1, async (subject) => {
        const keys = newKeys(subject === ourDecorator ? calls : peerCalls);
        return (await microseconds(connections.get(subject).balance, keys)) - (await microseconds(plain, keys));
      });
      // The first repeat warms up.
      return DECORATORS.map((subject) => median(results.get(subject).slice(1)));
    }),
});

async function microseconds(balance, keys) {
  const start = performance.now();
  for (let i = 0; i < keys.length; i += 1) {
    await balance.credit(keys[i]);
  }
  return ((performance.now() - start) * 1_000) / keys.length;
}
