import { startMySql } from './mysql-server.mjs';
import { startPostgres } from './postgres-server.mjs';
import { startRedis } from './redis-server.mjs';
import { floor, mysql, mysqlFloor, mysqlThatPolls, postgres, postgresFloor, quorum, quorumFloor, thisLibrary } from './subjects/index.mjs';

const QUORUM = 5;

/**
 * The kinds of store, each with servers of its own, where the library and the floor connect to. A pair may cost `limit`
 * × the floor; Redis has a row of its own for that. `patience` is the part of all pairs that is measured: where each
 * commit waits for the disk, less.
 */
export const STORE_PLACES = [
  { name: 'redis', limit: null, patience: 1, start: async () => onRedis(thisLibrary, floor, [await startRedis()]) },
  {
    name: `quorum of ${QUORUM}`,
    limit: 1.5,
    patience: 1,
    start: async () => onRedis(quorum, quorumFloor, await Promise.all(Array.from({ length: QUORUM }, () => startRedis()))),
  },
  { name: 'postgres', limit: 1.3, patience: 0.25, start: async () => onPostgres(await startPostgres()) },
  // The time that the library adds by itself; with the disk it is hidden.
  { name: 'postgres fsync off', limit: null, patience: 1, start: async () => onPostgres(await startPostgres('fsync=off')) },
  { name: 'mysql', limit: 1.4, patience: 0.25, start: async () => onMySql(await startMySql()) },
  // Commits do not wait for the disk.
  {
    name: 'mysql flush 2',
    limit: 1.4,
    patience: 1,
    start: async () => onMySql(await startMySql('--innodb-flush-log-at-trx-commit=2')),
  },
];

function onRedis(library, hand, servers) {
  const ports = servers.map(({ port }) => port);
  return {
    subjects: [library, hand],
    port: ports.length === 1 ? ports[0] : ports,
    clear: () => Promise.all(servers.map(({ client }) => client.flushall())),
    stop: () => Promise.all(servers.map((server) => server.stop())),
  };
}

/** Rows are not cleared: the library keeps them, and cleans up after itself. */
function onPostgres(server) {
  return { subjects: [postgres, postgresFloor], port: server.port, clear: async () => undefined, stop: () => server.stop() };
}

/**
 * As with PostgreSQL. Waiting is measured too: each way to wait, with the longest time of a hand-over in milliseconds.
 */
function onMySql(server) {
  return {
    subjects: [mysql, mysqlFloor],
    port: server.port,
    clear: async () => undefined,
    stop: () => server.stop(),
    statements: () => server.statements(),
    fleetLimits: { ratio: 1.15, statements: 0.3 },
    waiters: [
      { subject: mysql, limitMs: 6 },
      { subject: mysqlThatPolls, limitMs: 35 },
    ],
  };
}
