const { readFileSync } = require('node:fs');

/**
 * The suites that take long. Some need groups of servers that fail over. The others prove again what other suites prove
 * by example: on random runs, with planted defects, with other versions and libraries, or for a store that differs from
 * another in one thing. Of a quorum and of MySQL, `npm test` plays only the contract of stores. It leaves these suites
 * out; `npm run test:long` runs them, and `.ci/run` runs both.
 */
const LONG = [
  'test/model/',
  'test/explorer/',
  'test/torture/torture.spec.ts',
  'test/quorum/',
  'test/stores/quorum.spec.ts',
  'test/stores/left-behind.spec.ts',
  'test/mysql/',
  'test/stores/mysql.spec.ts',
  'test/security/tickets-elsewhere.spec.ts',
  'test/postgres/defects.spec.ts',
  'test/postgres/given-back.spec.ts',
  'test/redis/defects.spec.ts',
  // The runner of the tests, and whole programs.
  'test/runner/',
  'test/postgres/processes.spec.ts',
  'test/postgres/strict.spec.ts',
  'test/sql/recovery.spec.ts',
  'sample-app/test/operations.e2e.spec.ts',
  'test/examples/sqlite.spec.ts',
  'test/readme/quick-start.spec.ts',
  'sample-app/test/demo.e2e.spec.ts',
  'sample-app/test/two-applications-elsewhere.e2e.spec.ts',
  'sample-app/test/outages-elsewhere.e2e.spec.ts',
  'test/nest/driver-callbacks.spec.ts',
  'test/nest/keeps-process.spec.ts',
  'test/stores/keeps-process.spec.ts',
  // Each fault on a server of its own.
  'test/operations/',
  // Whole applications, with many callers.
  'test/applications/',
  // Groups of servers that fail over.
  'test/redis/cluster',
  'test/redis/sentinel',
  'test/redis/replicas-cluster.spec.ts',
  // Waits for pings of 5 s.
  'test/redis/refused-connections.spec.ts',
  // An hour of calls.
  'test/redis/restarting-methods.spec.ts',
  // With other libraries, versions and modes.
  'test/nest/keys/minified.spec.ts',
  'test/package/loading.spec.ts',
  'test/package/older-lib.spec.ts',
  'test/long-jobs/',
  'test/readme/recipes.spec.ts',
  'test/readme/advisory-locks.spec.ts',
  'test/readme/functions.spec.ts',
  'test/readme/idempotency.spec.ts',
  'test/redis/clients.spec.ts',
  'test/redis/clients-tls.spec.ts',
  'test/redis/clients-under-faults.spec.ts',
  'test/redis/hopeless-connections.spec.ts',
  'test/redis/rotated-passwords.spec.ts',
  'test/operate/telemetry/scrape.spec.ts',
  'test/testing/fake-timers.spec.ts',
  'test/tickets/graphql.spec.ts',
  'test/transaction/',
  'test/package/matrix.spec.ts',
  'test/package/coming-from.spec.ts',
  'test/package/store-contract.spec.ts',
  'test/package/developer-tools.spec.ts',
  // The actions of a user of the page are in test/page/browser.spec.ts.
  'test/page/views.spec.ts',
  'test/page/places.spec.ts',
  // Each list is proved by test/page/changes.spec.ts.
  'test/page/large-lists.spec.ts',
  // The commands are proved on Redis.
  'test/cli/postgres.spec.ts',
  'test/cli/quorum.spec.ts',
  // The messages of commands where a right or an answer is missing.
  'test/cli/rights.spec.ts',
  'test/cli/absence.spec.ts',
  'test/cli/cluster.spec.ts',
  'test/cli/sentinel.spec.ts',
  'test/cli/mysql.spec.ts',
  'test/cli/node-redis.spec.ts',
  'test/cli/certificates.spec.ts',
  // Each runs the whole contract, several times.
  'test/cli/contract',
  'test/contract/contract-defects.spec.ts',
  // The effects of these are proved by the other suites of test/postgres/ and by test/mysql/turns.spec.ts.
  'test/postgres/servers.spec.ts',
  'test/stores/postgres-on-several-databases',
  'test/stores/pglite',
  'test/stores/mysql-that-polls',
  'test/stores/polled-memory',
  // npm test has test/redis/node-redis.spec.ts; `npm run test:clients` has all suites of Redis.
  'test/stores/redis-by-node-redis',
  // Groups of servers.
  'test/stores/redis-cluster',
  // The behaviour of leaders is proved on every store by test/nest/leader.spec.ts.
  'test/redis/leader.spec.ts',
  // The effects of replicas are proved by test/redis/replicas.spec.ts.
  'test/stores/redis-with-a-replica',
];

/**
 * The suites that `npm run test:long` plays once more, on servers that were fetched, though `npm test` has played them
 * on those of the machine.
 */
const BRIEF = ['stores/mysql-contract', 'stores/postgres', 'stores/postgres-contract', 'stores/redis', 'stores/redis-contract'];
/** The suites that it plays on each of those servers, by its product. */
const PLAYED = {
  mysql: ['mysql/*', 'model/procedures-alike', 'stores/mysql', 'stores/mysql-contract'],
  mariadb: ['stores/mysql', 'stores/mysql-contract'],
  postgres: ['stores/postgres', 'stores/postgres-contract'],
  redis: ['stores/redis', 'stores/redis-contract'],
  valkey: ['stores/redis', 'stores/redis-contract'],
};

const wantsLong = process.env.TEST_LONG !== undefined;
/** With the name of a client package: the suites that take their connections from `test/support/redis-source.ts`. */
const wantsClient = process.env.TEST_REDIS_CLIENT !== undefined;
const TAKES_CLIENTS = /support\/redis-(source|world)'/;

const isOneOf = (path, parts) => parts.some((part) => path.includes(`/${part}`));
/** Where servers were fetched, `jest.config.mjs` leaves the brief ones to them. */
const isSelected = (path) => isOneOf(path, LONG) === wantsLong || (wantsLong && BRIEF.some((name) => path.endsWith(`/${name}.spec.ts`)));

module.exports = (paths) => ({
  filtered: paths.filter((path) => (wantsClient ? TAKES_CLIENTS.test(readFileSync(path, 'utf8')) : isSelected(path))),
});
Object.assign(module.exports, { BRIEF, PLAYED });
