import { MySqlLockStore } from '../../../lib/mysql/index';
import { DATABASE, MySqlServer } from '../../support/mysql-server';
import type { Faults, World } from './fault';

const USER = "locker@'127.0.0.1'";

async function single(strike: (server: MySqlServer) => unknown): Promise<World> {
  const server = await MySqlServer.start();
  await new MySqlLockStore(server.pool()).ensureSchema();
  await server.query(`CREATE USER ${USER} IDENTIFIED BY 'one'`);
  await server.query(`GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON ${DATABASE}.* TO ${USER}`);
  return {
    connect: () => new MySqlLockStore(server.pool({ user: 'locker', password: 'one' })),
    address: { LOCKS_MYSQL: `mysql://locker:one@127.0.0.1:${server.port}/${DATABASE}` },
    strike: () => strike(server),
    stop: () => server.stop(),
  };
}

/** Changes a setting, which counts for connections from now on. */
async function change(server: MySqlServer, sql: string): Promise<void> {
  await server.query(sql);
  await server.endConnections('locker');
}

/** By a session that stays. */
async function hold(server: MySqlServer, sql: string): Promise<void> {
  const session = await server.pool({ connectionLimit: 1 }).promise().getConnection();
  // It ends with the server.
  session.on('error', () => undefined);
  await session.query(sql);
}

export const MYSQL: Faults = {
  'read-only': () => single((server) => server.query('SET GLOBAL read_only = 1')),
  hangs: () => single((server) => server.pause()),
  gone: () => single((server) => server.kill()),
  'wrong password': () => single((server) => change(server, `SET PASSWORD FOR ${USER} = PASSWORD('two')`)),
  'rights taken': () => single((server) => change(server, `REVOKE EXECUTE ON ${DATABASE}.* FROM ${USER}`)),
  'locked table': () => single((server) => hold(server, `LOCK TABLES ${DATABASE}.distributed_lock_lease WRITE`)),
  'global read lock': () => single((server) => hold(server, 'FLUSH TABLES WITH READ LOCK')),
  'table dropped': () => single((server) => server.query(`DROP TABLE ${DATABASE}.distributed_lock_lease`)),
};
