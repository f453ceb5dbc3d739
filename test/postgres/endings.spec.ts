import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { LockStoreError } from '../../lib/core/words/errors';
import { PostgresLockStore } from '../../lib/postgres/postgres-lock-store';
import { patient } from '../support/patient';
import { PostgresServer } from '../support/postgres-server';
import { until } from '../support/until';
import { newHold } from '../support/new-hold';

/**
 * Stands before a server, and may hold back its replies to deliver them in one piece, as to a process that stood still
 * meanwhile.
 */
async function startGate(port: number): Promise<{ readonly port: number; hold(): void; deliver(): void; stop(): void }> {
  let held: { readonly client: Socket; readonly data: Buffer }[] | undefined;
  const sockets: Socket[] = [];
  const gate = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    sockets.push(client, upstream);
    sockets.forEach((socket) => socket.on('error', () => undefined));
    client.pipe(upstream);
    upstream.on('data', (data) => (held ? held.push({ client, data }) : client.write(data)));
  }).listen(0, '127.0.0.1');
  await once(gate, 'listening');
  return {
    port: (gate.address() as AddressInfo).port,
    hold: () => (held = []),
    deliver() {
      const pieces = held ?? [];
      held = undefined;
      pieces[0]?.client.write(Buffer.concat(pieces.map(({ data }) => data)));
    },
    stop() {
      gate.close();
      sockets.forEach((socket) => socket.destroy());
    },
  };
}

test.each([
  ['an operation waits for it', 1_000],
  ['the operation that asked for it has given up', 100],
])(
  'a connection that ends in the moment when it is made, while %s, fails one operation, and not the process',
  async (_, limitMs) => {
    const server = await PostgresServer.start();
    const gate = await startGate(server.port);
    const pool = server.pool({ connectionString: server.urlFor('postgres', gate.port), application_name: 'locks' });
    const store = new PostgresLockStore(pool, { listen: false });
    const connections = async (): Promise<number> =>
      (await server.query(`SELECT FROM pg_stat_activity WHERE application_name = 'locks' AND state = 'idle'`)).length;
    const acquire = (): Promise<unknown> => store.acquire(newHold('k', { ttlMs: 10_000, limitMs })).catch((error: unknown) => error);
    try {
      await store.ensureSchema();
      await store.open({ prefix: 'lock', warn: () => undefined });
      await server.terminateBackends();
      await until('that the pool is empty', async () => pool.totalCount === 0);
      gate.hold();
      const acquired = acquire();
      await until('a new connection', async () => (await connections()) === 1);
      await server.terminateBackends();
      await until('that it is gone', async () => (await connections()) === 0);
      if (limitMs < 1_000) {
        await acquired;
      }
      gate.deliver();
      expect(await acquired).toBeInstanceOf(LockStoreError);
      expect(await patient(store).acquire(newHold('k', { ttlMs: 10_000 }))).toMatchObject({ fence: expect.any(Number) });
    } finally {
      await store.close();
      gate.stop();
      await server.stop();
    }
  },
  60_000,
);

test.each(['57000', '58000', '40003'])('a statement that is answered with the code %s may have been carried out', async (code) => {
  const server = await PostgresServer.start();
  const store = new PostgresLockStore(server.pool(), { listen: false });
  try {
    await store.ensureSchema();
    await store.open({ prefix: 'lock', warn: () => undefined });
    await server.query(
      `CREATE OR REPLACE FUNCTION distributed_lock.release(_key text, _hold text, _owner text, _unanswered boolean) RETURNS text LANGUAGE plpgsql
       AS $$ BEGIN RAISE EXCEPTION 'so it says' USING ERRCODE = '${code}'; END $$`,
    );
    await expect(patient(store).release(newHold('k'))).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: true });
  } finally {
    await store.close();
    await server.stop();
  }
});
