import { AsyncLocalStorage } from 'node:async_hooks';
import { jest } from '@jest/globals';
import { Client, type Pool } from 'pg';
import { LockStoreError } from '../../lib/core/words/errors';
import { PostgresLockStore } from '../../lib/postgres/index';
import { newHold } from '../support/new-hold';
import { opened } from '../support/opened';
import { patient } from '../support/patient';
import { PostgresServer } from '../support/postgres-server';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';

let server: PostgresServer;

beforeAll(async () => {
  server = await PostgresServer.start();
  await new PostgresLockStore(server.pool()).ensureSchema();
});
afterEach(async () => {
  jest.restoreAllMocks();
});
afterAll(() => server.stop());

async function open(pool: Pool): Promise<PostgresLockStore> {
  return opened(new PostgresLockStore(pool, { listen: false }));
}

/** A store that was opened while its database could not be reached, which it can be by now. */
async function openWhileAway(): Promise<{ proxy: TcpProxy; pool: Pool; store: PostgresLockStore }> {
  const proxy = await TcpProxy.start(server.port);
  const pool = server.pool({ connectionString: server.urlFor('postgres', proxy.port) });
  proxy.mode = 'refuse';
  const store = await open(pool);
  proxy.mode = 'pass';
  return { proxy, pool, store };
}

test('a pool of a pg that does not know whether a connection is inside a transaction is refused', () => {
  class OlderClient extends Client {}
  Object.defineProperty(OlderClient.prototype, 'getTransactionStatus', { value: undefined });
  const older = server.pool({ Client: OlderClient as typeof Client });
  expect(() => new PostgresLockStore(older)).toThrow(/of a pg before 8\.21.*Install pg 8\.21 or later/);
});

test.each([
  [160, 80],
  [400, 200],
  [1_000, 250],
])(
  'a renewal that has %d ms waits for rows that are locked for %d ms at most: the others have their answer in time',
  async (limitMs, waitMs) => {
    const store = await open(server.pool());
    const query = jest.spyOn(Client.prototype, 'query');
    const holds = [newHold('k', { fence: 1, limitMs }), newHold('l', { fence: 1, limitMs: 1_000 })];
    let sent: readonly (readonly unknown[])[] = [];
    await until('that it is sent', async () => {
      await store.renew(holds).catch(() => undefined);
      sent = query.mock.calls.filter(([sql]) => sql.includes('.renew('));
      return sent.length > 0;
    });
    const [[, values]] = sent as [[string, readonly unknown[]]];
    expect(values.at(-1)).toBe(waitMs);
  },
);

test('what locks send runs in the context of no caller', async () => {
  const pool = server.pool();
  const store = patient(await open(pool));
  const context = new AsyncLocalStorage<string>();
  const contexts = new Set<string | undefined>();
  const connect = pool.connect.bind(pool) as (...args: unknown[]) => void;
  jest.spyOn(pool, 'connect').mockImplementation(((...args: unknown[]) => {
    contexts.add(context.getStore());
    return connect(...args);
  }) as never);
  for (const caller of ['first', 'second']) {
    await context.run(caller, async () => {
      const hold = newHold(caller);
      await store.acquire(hold);
      await store.release(hold);
    });
  }
  expect([...contexts]).toEqual([undefined]);
});

test('a process that is gone is so for each of several hand-overs that run at the same time', async () => {
  const asked = await Promise.all([server.pool().connect(), server.pool().connect()]);
  const answers: unknown[] = [];
  for (const client of asked) {
    // Not committed before the other one asks.
    await client.query('BEGIN');
    const { rows } = await client.query<{ there: boolean }>(`SELECT distributed_lock.is_present('host:1:0badcafe') AS there`);
    answers.push(rows[0]?.there);
  }
  expect(answers).toEqual([false, false]);
  const [listener] = asked;
  await listener.query('ROLLBACK');
  await listener.query(`SELECT pg_advisory_lock_shared(distributed_lock.presence('host:1:0badcafe'))`);
  expect(await server.query(`SELECT distributed_lock.is_present('host:1:0badcafe') AS there`)).toEqual([{ there: true }]);
  for (const client of asked) {
    client.release(true);
  }
});

test('a database that was away at the start is checked once, however many callers want it when it is back', async () => {
  const { proxy, pool, store } = await openWhileAway();
  let statements = 0;
  const connect = pool.connect.bind(pool) as (...args: unknown[]) => void;
  jest.spyOn(pool, 'connect').mockImplementation(((...args: unknown[]) => {
    statements++;
    return connect(...args);
  }) as never);
  const granted = new Set<string>();
  const ask = async (key: string): Promise<void> => {
    const reply = await store.acquire(newHold(key, { limitMs: 1_000 })).catch((error: unknown) => error);
    if (!(reply instanceof LockStoreError)) {
      granted.add(key);
    }
  };
  const keys = Array.from({ length: 500 }, (_, at) => `many ${at}`);
  await Promise.all(keys.map(ask));
  // Four for the check, of which there may have been one more after a stall, and one for each 16 keys.
  expect(statements).toBeLessThan(100);
  await until('that all are granted', async () => {
    await Promise.all(keys.filter((key) => !granted.has(key)).map(ask));
    return granted.size === keys.length;
  });
  await proxy.stop();
});

test('an operation that a check leaves no time for says so, and was not sent', async () => {
  const { proxy, store } = await openWhileAway();
  proxy.latencyMs = 400;
  const late = await store.acquire(newHold('short', { limitMs: 100 })).catch((error: unknown) => error);
  expect(late).toMatchObject({
    code: 'LOCK_STORE',
    unknown: false,
    key: 'short',
    detail: expect.stringMatching(
      /^Lock "short": PostgreSQL is being checked, since it was away when the store was opened\. The call may be/,
    ),
  });
  // The check goes on, and passes: a later call needs no time for it.
  await until('that a short call is answered', async () => {
    proxy.latencyMs = 0;
    return (await store.acquire(newHold('short', { limitMs: 100 })).catch(() => undefined)) !== undefined;
  });
  await proxy.stop();
});

test('the wait for a connection does not count as the time of travel: a command may not be carried out later by that', async () => {
  const pool = server.pool({ max: 1 });
  const latest: number[] = [];
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    client.query = ((sql: unknown, values: unknown, ...rest: unknown[]) => {
      if (Array.isArray(values) && String(sql).includes('acquire(')) {
        latest.push(Math.max(...values.filter((value) => typeof value === 'number')));
      }
      return query(sql, values, ...rest);
    }) as never;
  });
  const store = patient(await open(pool));
  let ahead = Infinity;
  // Once more where the machine stalled.
  for (let round = 0; round < 5 && ahead > 300; round++) {
    const client = await pool.connect();
    const first = store.acquire(newHold(`waits ${round}`, { limitMs: 1_000 }));
    await new Promise((resolve) => setTimeout(resolve, 600));
    client.release();
    await first;
    const before = Date.now();
    await store.acquire(newHold(`next ${round}`, { limitMs: 1_000 }));
    // A second to wait for the reply, and a second for small steps of the clock.
    ahead = (latest.at(-1) as number) - before - 2_000;
  }
  expect(ahead).toBeLessThan(300);
});
