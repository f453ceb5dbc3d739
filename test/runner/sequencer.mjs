import Sequencer from '@jest/test-sequencer';

/** The suites that take a minute or more, the longest first: the run ends sooner where they begin first. */
const SLOW = [
  'test/package/matrix',
  'test/torture/torture',
  'test/page/views',
  'test/package/store-contract',
  'test/model/',
  'test/operations/',
  'test/explorer/',
  'test/mysql/idle-transaction',
  'sample-app/test/demo',
  'test/runner/suite-runner',
  'test/stores/',
  'sample-app/test/two-applications',
  'test/redis/faults',
  'test/redis/sentinel',
  'test/redis/cluster',
  'test/redis/replicas',
];

function rankOf({ path }) {
  const at = SLOW.findIndex((part) => path.includes(`/${part}`));
  return at < 0 ? SLOW.length : at;
}

export default class SlowFirst extends Sequencer {
  sort(tests) {
    // eslint-disable-next-line unicorn/no-array-sort -- the sequencer's own
    return super.sort(tests).toSorted((first, second) => rankOf(first) - rankOf(second));
  }
}
