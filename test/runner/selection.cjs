/**
 * The suites that take long and prove again, on random runs or planted defects, what others prove by example. `npm test` leaves them out;
 * `npm run test:long` runs them, and `.ci/run` runs both.
 */
const LONG = [
  'test/model/',
  'test/torture/torture.spec.ts',
  'test/quorum/defects.spec.ts',
  'test/postgres/defects.spec.ts',
  'test/package/matrix.spec.ts',
];

const wantsLong = process.env.TEST_LONG !== undefined;

module.exports = (paths) => ({
  filtered: paths.filter((path) => LONG.some((part) => path.includes(`/${part}`)) === wantsLong),
});
