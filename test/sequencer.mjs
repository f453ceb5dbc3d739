import Sequencer from '@jest/test-sequencer';

const isFirst = ({ path }) => path.includes('/test/stores/');

/**
 * The suites of the stores measure how soon a lock is handed over, so they come first: later the one process of the tests has the memory
 * of all others to look through.
 */
export default class extends Sequencer {
  sort(tests) {
    // eslint-disable-next-line unicorn/no-array-sort -- the sequencer's own
    const sorted = super.sort(tests);
    return [...sorted.filter(isFirst), ...sorted.filter((test) => !isFirst(test))];
  }
}
