import Sequencer from '@jest/test-sequencer';

/** The suites that take a minute or more: the run ends sooner where they begin first. */
const SLOW = [
  'test/stores/',
  'sample-app/test/two-applications',
  'test/redis/faults',
  'test/redis/sentinel',
  'test/redis/cluster',
  'test/redis/replicas',
];

const isSlow = ({ path }) => SLOW.some((part) => path.includes(`/${part}`));

export default class SlowFirst extends Sequencer {
  sort(tests) {
    // eslint-disable-next-line unicorn/no-array-sort -- the sequencer's own
    const sorted = super.sort(tests);
    return [...sorted.filter(isSlow), ...sorted.filter((test) => !isSlow(test))];
  }
}
