// The cost of a decorated call where no store takes time: in memory, beside the least that any context of a call takes.
import { atMost, line } from '../line.mjs';
import { median } from '../numbers.mjs';
import { thisLibrary } from '../subjects/index.mjs';
import { withWorkers } from '../worker.mjs';

const CONTEXT = 'run + await';
/** The semi-spaces hold all that a turn allocates, in MiB: nothing is collected while it is counted. */
const NO_COLLECTION = ['--expose-gc', '--min-semi-space-size=128', '--max-semi-space-size=128'];

export const memory = {
  name: 'memory',
  async run({ sizes }) {
    const times = await withWorkers('memory', 1, ([worker]) => worker.ask('times', sizes.memory));
    const bytes = await withWorkers('memory', 1, ([worker]) => worker.ask('bytes', sizes.memory), NO_COLLECTION);
    const added = median(times.call.map((time, repeat) => time - times.plain[repeat]));
    const beside = (row, figures, limit) => {
      const ratio = median(figures.map((time, repeat) => time / times.context[repeat]));
      return line(row, thisLibrary.name, median(figures), 'µs', { ratio, of: CONTEXT, ...atMost(ratio, limit) });
    };
    return [
      beside('memory call', times.call, 20),
      beside('memory re-entry', times.reentry, 8),
      line('memory context', CONTEXT, median(times.context), 'µs', { note: 'one AsyncLocalStorage.run and one await' }),
      line('memory bytes', thisLibrary.name, bytes / 1_024, 'KiB a call', atMost(bytes / 1_024, 8)),
      line('decorator', thisLibrary.name, added, 'µs', { note: 'more than without, memory store', ...atMost(added, 20) }),
    ];
  },
};
