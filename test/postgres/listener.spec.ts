import { jest } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, type Pool, type PoolClient } from 'pg';
import { Listener } from '../../lib/postgres/listening/listener';
import { PostgresLockStore } from '../../lib/postgres/postgres-lock-store';
import { connected, PostgresServer } from '../support/postgres-server';
import { isOfSlowness, noWarning } from '../support/no-warning';
import { until } from '../support/until';
import { newHold } from '../support/new-hold';

let server: PostgresServer;
let store: PostgresLockStore;
let warnings: string[];

beforeAll(async () => {
  server = await PostgresServer.start();
  await new PostgresLockStore(server.pool()).ensureSchema();
});
beforeEach(() => {
  warnings = [];
});
afterEach(() => store.close());
afterAll(() => server.stop());

async function open(pool: Pool, options: ConstructorParameters<typeof PostgresLockStore>[1] = {}): Promise<void> {
  store = new PostgresLockStore(await connected(pool), options);
  await store.open({ prefix: 'lock', warn: (message) => message.includes('fsync') || isOfSlowness(message) || warnings.push(message) });
}

/** A pool that lets `around` send each message to a listener, and calls `sent` when the server has it. */
function messenger(around: (send: () => void) => void, sent: () => void = () => undefined): Pool {
  const pool = server.pool();
  pool.on('acquire', (client: PoolClient & { patched?: boolean }) => {
    if (!client.patched) {
      client.patched = true;
      const query = client.query.bind(client) as (...args: unknown[]) => unknown;
      Object.assign(client, {
        query(text: string, values: unknown, answered: (...reply: unknown[]) => void) {
          const isMessage = text.includes('pg_notify(');
          const reply = (...result: unknown[]): void => {
            answered(...result);
            if (isMessage) {
              sent();
            }
          };
          (isMessage ? around : (send: () => void): void => send())(() => query(text, values, reply));
        },
      });
    }
  });
  return pool;
}

const listeners = async (): Promise<number> =>
  (await server.query(`SELECT FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted`)).length;

test('a connection that ends before its first message is made anew at once, and is not taken for one that delivers nothing', async () => {
  let messages = 0;
  await open(
    messenger((send) => {
      if (messages++ === 0) {
        void server.terminateBackends(`query LIKE 'LISTEN%'`).then(send);
      } else {
        send();
      }
    }),
  );
  await until('that it listens', async () => (await listeners()) === 1);
  // Each of them may be late, and is followed by another one then.
  expect(messages).toBeGreaterThan(1);
  warnings.forEach((message) => noWarning(message));
});

test('a store that is closed before its first message warns of nothing', async () => {
  await open(
    messenger((send) => {
      void store.close().then(send);
    }),
  );
  warnings.forEach((message) => noWarning(message));
  await until('that nobody listens', async () => (await listeners()) === 0);
});

test('a first message that lies unread while the process is blocked is received', async () => {
  const block = async (): Promise<void> => {
    // The listener waits for it by now, and nothing else was read.
    for (let turn = 0; turn < 50; turn++) {
      await undefined;
    }
    const over = performance.now() + 2_100;
    while (performance.now() < over);
  };
  await open(
    messenger(
      (send) => send(),
      () => void block(),
    ),
  );
  await until('that it listens', async () => (await listeners()) === 1);
  expect(warnings).toEqual([]);
});

test('a connection that is young is trusted where a message seems to be missing; one that is older, or has ended, is made anew', async () => {
  store = new PostgresLockStore(server.pool(), { listen: false });
  const realNow = performance.now.bind(performance);
  let aheadMs = 60_000;
  const now = jest.spyOn(performance, 'now').mockImplementation(() => realNow() + aheadMs);
  const states: boolean[] = [];
  const listener: Listener = new Listener('host:1:aa', 'everybody', 'hashtext($1)', {
    connect: () => new Client({ connectionString: server.url }),
    notify: (...message) => server.query('SELECT pg_notify($1, $2)', message),
    received: () => undefined,
    changed: () => states.push(listener.acknowledged),
    undelivered: () => undefined,
    failed: () => undefined,
  });
  try {
    await listener.open();
    await until('that it listens', () => listener.acknowledged);
    const before = [...states];
    listener.distrust();
    expect(listener.acknowledged).toBe(true);
    aheadMs += 60_000;
    listener.distrust();
    expect(listener.acknowledged).toBe(false);
    await until('that it listens again', () => listener.acknowledged);
    await server.terminateBackends("query LIKE 'SELECT pg_advisory_lock_shared%'");
    await until('that it listens once more', () => states.length >= before.length + 4);
    // A connection that is made on a busy machine may be late, and is followed by another one.
    expect(states.slice(before.length, before.length + 4)).toEqual([false, true, false, true]);
  } finally {
    listener.close();
    now.mockRestore();
  }
});

test('an address of its own that cannot be reached is warned of once, and the locks work all the same', async () => {
  await open(server.pool(), { listen: server.url.replace(/postgres$/, 'nowhere') });
  await until('a warning', () => warnings.length > 0);
  // It is tried again meanwhile.
  await sleep(500);
  expect(warnings).toEqual([expect.stringMatching(/address that is given as listen.*every 300 ms.*"nowhere" does not exist/)]);
  const hold = newHold('k', { owner: 'o', id: 'i', ttlMs: 60_000 });
  expect(await store.acquire(hold)).toMatchObject({ fence: expect.any(Number) as number });
});
