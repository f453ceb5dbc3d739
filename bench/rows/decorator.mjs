// What the decorator adds to the call of a method that does nothing.
import { atMost, line } from '../line.mjs';
import { DECORATORS, ourDecorator } from '../subjects/decorators.mjs';
import { withWorkers } from '../worker.mjs';

export const decorator = {
  name: 'decorator',
  run: ({ server, sizes }) =>
    withWorkers('decorator', 1, async ([worker]) => {
      const added = await worker.ask('measure', { port: server.port, ...sizes.decorator });
      return DECORATORS.map((subject, index) => {
        const target = subject === ourDecorator ? atMost(added[index], 20) : {};
        return line('decorator', subject.name, added[index], 'µs', { note: subject.note, ...target });
      });
    }),
};
