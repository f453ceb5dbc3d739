import sequencer from '@jest/test-sequencer';

/**
 * The suites of the stores measure how soon a lock is handed over, so they come first: later the one process of the tests has the memory
 * of all others to look through.
 */
export default class extends (sequencer.default ?? sequencer) {
  sort(tests) {
    const isFirst = ({ path }) => path.includes('/test/stores/');
    const sorted = super.sort(tests);
    return [...sorted.filter(isFirst), ...sorted.filter((test) => !isFirst(test))];
  }
}
