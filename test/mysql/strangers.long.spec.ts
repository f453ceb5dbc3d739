import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'mysql2';
import { createConnection, type Connection, type RowDataPacket } from 'mysql2/promise';
import { MySqlLockStore } from '../../lib/mysql/index';
import { IS_MYSQL, MySqlServer } from '../support/mysql-server';
import { newHold } from '../support/new-hold';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';

/** How many statements wait for a row until they are to be ended. */
const STUCK = 3;
/** More than the connections that the code under test has had. */
const STRANGERS = 40;

const closing: (() => unknown)[] = [];

afterAll(async () => {
  for (const close of closing.splice(0).toReversed()) {
    await close();
  }
});

async function start(): Promise<MySqlServer> {
  const server = await MySqlServer.start();
  closing.push(() => server.stop());
  await new MySqlLockStore(server.pool()).ensureSchema();
  return server;
}

async function connect(server: MySqlServer): Promise<Connection> {
  const connection = await createConnection({ host: '127.0.0.1', port: server.port, user: 'root' });
  connection.on('error', () => undefined);
  closing.push(() => connection.destroy());
  return connection;
}

/** Statements of an application that knows nothing of locks, as the same user; answers their connections. */
async function strangersOf(server: MySqlServer): Promise<Set<number>> {
  const connections = await Promise.all(Array.from({ length: STRANGERS }, () => connect(server)));
  const ids = connections.map(({ threadId }) => threadId);
  connections.forEach((connection) => connection.query('SELECT sleep(300)').catch(() => undefined));
  await until('that they work', async () => (await atWork(server)).length === STRANGERS);
  return new Set(ids);
}

async function atWork(server: MySqlServer): Promise<unknown[]> {
  return server.query(`SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT sleep%' AND command = 'Query'`);
}

/** A pool that gives so many connections, and lets the requests for more of them wait until it is opened. */
function gated(pool: Pool, count: number): { waiting: number; open: () => void } {
  const asked: Parameters<Pool['getConnection']>[0][] = [];
  const original = pool.getConnection.bind(pool);
  let left = count;
  pool.getConnection = (given) => (left-- > 0 ? original(given) : void asked.push(given));
  return {
    get waiting() {
      return asked.length;
    },
    open: () => {
      left = Infinity;
      asked.splice(0).forEach((given) => original(given));
    },
  };
}

/** The kinds of change of what answers at an address. */
const CHANGES: readonly (readonly [string, (server: MySqlServer, proxy: TcpProxy) => Promise<MySqlServer>])[] = [
  [
    'hangs and is replaced by another one',
    async (server, proxy) => {
      server.pause();
      closing.push(() => server.resume());
      const other = await start();
      proxy.target = other.port;
      return other;
    },
  ],
  [
    'ends and is replaced by another one',
    async (server, proxy) => {
      const other = await start();
      proxy.target = other.port;
      proxy.cut();
      await server.kill();
      return other;
    },
  ],
  [
    'starts again',
    async (server) => {
      await server.kill();
      await server.start();
      return server;
    },
  ],
  [
    'starts again and nobody is told',
    async (server, proxy) => {
      proxy.isSilent = true;
      await server.kill();
      await server.start();
      return server;
    },
  ],
];

/**
 * Plays one change, and answers how many of the strangers there are still at work. The user may end the statements of
 * everybody.
 */
async function play(change: (server: MySqlServer, proxy: TcpProxy) => Promise<MySqlServer>): Promise<number> {
  const server = await start();
  const proxy = await TcpProxy.start(server.port);
  closing.push(() => proxy.stop());
  const pool = server.pool({ port: proxy.port, connectionLimit: STUCK });
  const store = new MySqlLockStore(pool);
  await store.open({ prefix: 'lock', warn: () => undefined });
  closing.push(() => store.close());
  await until('that the row is there', () =>
    store.release(newHold('k')).then(
      () => true,
      () => false,
    ),
  );
  const blocking = await connect(server);
  await blocking.query('START TRANSACTION');
  await blocking.query(`SELECT 1 FROM app.distributed_lock_lease WHERE name = 'lock:{k}' FOR UPDATE`);
  const stuckIds = async (): Promise<number[]> =>
    (await server.query<RowDataPacket>(`SELECT id FROM information_schema.processlist WHERE info LIKE '%distributed_lock_lease%' AND id <> connection_id()`)).map(({ id }) => Number(id)); // prettier-ignore
  const ready = await Promise.all(Array.from({ length: STUCK }, () => pool.promise().getConnection()));
  ready.forEach((connection) => connection.release());
  const gate = gated(pool, STUCK);
  const calls = Array.from({ length: STUCK }, () => store.acquire(newHold('k')).catch((error: unknown) => error));
  await until('that all wait for the row', async () => (await stuckIds()).length === STUCK);
  const stuck = await stuckIds();
  await Promise.all(calls);
  await until('that they are to be ended', () => gate.waiting === STUCK);
  const now = await change(server, proxy);
  const strangers = await strangersOf(now);
  expect(stuck.filter((id) => strangers.has(id))).toHaveLength(STUCK);
  gate.open();
  // It comes after what waited for a connection before it.
  await until('that locks work again', () =>
    store.acquire(newHold('other')).then(
      ({ fence }) => fence !== undefined,
      () => false,
    ),
  );
  await sleep(500);
  return (await atWork(now)).length;
}

describe('a statement that is to be ended', () => {
  let left: Promise<number>[] = [];

  // Side by side: each waits most of the time, and has servers of its own.
  beforeAll(() => {
    left = CHANGES.map(([, change]) => play(change));
    left.forEach((each) => each.catch(() => undefined));
  });

  test.each(CHANGES.map(([name], at) => [name, at] as const))(
    'when the server %s ends no statement of a stranger there',
    async (_, at) => {
      expect(await left[at]).toBe(STRANGERS);
    },
    60_000,
  );
});

test('a statement that waits too long is ended by its number, and nothing else of its connection where statements have numbers', async () => {
  const server = await start();
  const asked: string[] = [];
  const pool = server.pool();
  pool.on('connection', (connection) => {
    const query = connection.query.bind(connection) as (...args: unknown[]) => unknown;
    connection.query = ((options: { sql: string }, ...rest: unknown[]) => {
      asked.push(options.sql);
      return query(options, ...rest);
    }) as never;
  });
  const store = new MySqlLockStore(pool);
  await store.open({ prefix: 'lock', warn: () => undefined });
  closing.push(() => store.close());
  await store.release(newHold('k'));
  const blocking = await connect(server);
  await blocking.query('START TRANSACTION');
  await blocking.query(`SELECT 1 FROM app.distributed_lock_lease WHERE name = 'lock:{k}' FOR UPDATE`);
  await store.acquire(newHold('k', { limitMs: 100 })).catch(() => undefined);
  await until('that it is ended', () => asked.some((sql) => sql.startsWith('KILL QUERY')));
  expect(asked.filter((sql) => sql.startsWith('KILL'))).toEqual([
    expect.stringMatching(IS_MYSQL ? /^KILL QUERY \d+$/ : /^KILL QUERY ID \d+$/),
  ]);
});
