import { PostgresLockStore } from '../../../lib/postgres/index';
import { PostgresServer } from '../../support/postgres-server';
import type { Faults, World } from './fault';

const SCHEMA = 'distributed_lock';

/** One server, whose user needs a password. */
async function single(strike: (server: PostgresServer) => unknown): Promise<World> {
  const server = await PostgresServer.start();
  await new PostgresLockStore(server.pool()).ensureSchema();
  await server.query("CREATE ROLE locker LOGIN PASSWORD 'one'");
  await server.query(`GRANT USAGE ON SCHEMA ${SCHEMA} TO locker`);
  await server.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${SCHEMA} TO locker`);
  await askPassword(server);
  const url = `postgres://locker:one@127.0.0.1:${server.port}/postgres`;
  return {
    connect: () => new PostgresLockStore(server.pool({ connectionString: url })),
    address: { LOCKS_POSTGRES: url },
    strike: () => strike(server),
    stop: () => server.stop(),
  };
}

async function askPassword(server: PostgresServer): Promise<void> {
  const [row] = await server.query<{ hba_file: string }>('SHOW hba_file');
  const lines = "('host all locker 127.0.0.1/32 scram-sha-256'), ('host all all 127.0.0.1/32 trust')";
  await server.query(`COPY (SELECT * FROM (VALUES ${lines}) AS lines) TO '${row?.hba_file}'`);
  await server.query('SELECT pg_reload_conf()');
}

/** Changes a setting, which counts for connections from now on. */
async function change(server: PostgresServer, sql: string): Promise<void> {
  await server.query(sql);
  await server.terminateBackends("usename = 'locker'");
}

/** By a transaction that stays open. */
async function lockTable(server: PostgresServer): Promise<void> {
  const session = await server.pool({ max: 1 }).connect();
  // It ends with the server.
  session.on('error', () => undefined);
  await session.query(`BEGIN; LOCK TABLE ${SCHEMA}.lease IN EXCLUSIVE MODE`);
}

export const POSTGRES: Faults = {
  'read-only': () => single((server) => change(server, 'ALTER DATABASE postgres SET default_transaction_read_only = on')),
  hangs: () => single((server) => server.pause()),
  gone: () => single((server) => server.kill()),
  'wrong password': () => single((server) => change(server, "ALTER ROLE locker PASSWORD 'two'")),
  'rights taken': () => single((server) => change(server, `REVOKE UPDATE ON ALL TABLES IN SCHEMA ${SCHEMA} FROM locker`)),
  'locked table': () => single(lockTable),
  'commits wait': () =>
    single((server) =>
      server.query("ALTER SYSTEM SET synchronous_standby_names = 'gone'").then(() => server.query('SELECT pg_reload_conf()')),
    ),
  'schema dropped': () => single((server) => server.query(`DROP SCHEMA ${SCHEMA} CASCADE`)),
};
