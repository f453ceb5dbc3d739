const { readFileSync } = require('node:fs');

/**
 * The end of the name of a suite that takes long. Some need groups of servers that fail over. The others prove again
 * what other suites prove by example: on random runs, with planted defects, with other versions and libraries, or for a
 * store that differs from another in one thing. Of a quorum and of MySQL, `npm test` plays only the contract of stores.
 * It leaves these suites out; `npm run test:long` runs them, and `.ci/run` runs both.
 */
const LONG = '.long.spec.ts';

/**
 * The suites that `npm run test:long` plays once more, on servers that were fetched, though `npm test` has played them
 * on those of the machine.
 */
const BRIEF = ['stores/mysql-contract', 'stores/postgres', 'stores/postgres-contract', 'stores/redis', 'stores/redis-contract'];
/** The suites that it plays on each of those servers, by its product. */
const PLAYED = {
  mysql: ['mysql/*', 'model/procedures-alike.long', 'stores/mysql.long', 'stores/mysql-contract'],
  mariadb: ['stores/mysql.long', 'stores/mysql-contract'],
  postgres: ['stores/postgres', 'stores/postgres-contract'],
  redis: ['stores/redis', 'stores/redis-contract'],
  valkey: ['stores/redis', 'stores/redis-contract'],
};

const wantsLong = process.env.TEST_LONG !== undefined;
/** With the name of a client package: the suites that take their connections from `test/support/redis-source.ts`. */
const wantsClient = process.env.TEST_REDIS_CLIENT !== undefined;
const TAKES_CLIENTS = /support\/redis-(source|world)'/;

/** Where servers were fetched, `jest.config.mjs` leaves the brief ones to them. */
const isSelected = (path) => path.endsWith(LONG) === wantsLong || (wantsLong && BRIEF.some((name) => path.endsWith(`/${name}.spec.ts`)));

module.exports = (paths) => ({
  filtered: paths.filter((path) => (wantsClient ? TAKES_CLIENTS.test(readFileSync(path, 'utf8')) : isSelected(path))),
});
Object.assign(module.exports, { BRIEF, PLAYED });
