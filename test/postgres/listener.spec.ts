import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import { PostgresLockStore } from '../../lib/stores/postgres/postgres-lock-store';
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

test('an address of its own that cannot be reached is warned of once, and the locks work all the same', async () => {
  await open(server.pool(), { listen: server.url.replace(/postgres$/, 'nowhere') });
  await until('a warning', () => warnings.length > 0);
  // It is tried again meanwhile.
  await sleep(500);
  expect(warnings).toEqual([expect.stringMatching(/address that is given as listen.*every 300 ms.*"nowhere" does not exist/)]);
  const hold = newHold('k', { owner: 'o', id: 'i', ttlMs: 60_000 });
  expect(await store.acquire(hold)).toMatchObject({ fence: expect.any(Number) as number });
});
