import 'reflect-metadata';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { LockStoreError } from '../../lib/core/words/errors';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import { PostgresLockStore, type PostgresLockStoreOptions } from '../../lib/postgres/index';
import { makeLocks } from '../support/make-locks';
import { patient } from '../support/patient';
import { PgBouncer } from '../support/pgbouncer';
import { connected, PostgresServer } from '../support/postgres-server';
import { quickest } from '../support/quickest';
import { until } from '../support/until';
import { newHold } from '../support/new-hold';

let server: PostgresServer;
const opened: PostgresLockStore[] = [];
const blocking: (() => Promise<void>)[] = [];

beforeAll(async () => {
  server = await PostgresServer.start();
  await new PostgresLockStore(server.pool()).ensureSchema();
});
afterEach(async () => {
  await Promise.all(blocking.splice(0).map((unlock) => unlock()));
  await standbys('');
  await Promise.all(opened.splice(0).map((store) => store.close()));
  await server.query('TRUNCATE distributed_lock.lease, distributed_lock.done');
});
afterAll(() => server.stop());

async function open(pool: Pool, options?: PostgresLockStoreOptions): Promise<PostgresLockStore> {
  const store = new PostgresLockStore(await connected(pool), options);
  opened.push(store);
  await store.open({ prefix: 'lock', warn: () => undefined });
  return store;
}

/** Locks the row of a key, and returns what unlocks it. */
async function blockRow(key: string): Promise<() => Promise<void>> {
  const client = await server.pool({ application_name: 'blocker' }).connect();
  await client.query(`BEGIN; SELECT FROM distributed_lock.lease WHERE key = 'lock:{${key}}' FOR UPDATE`);
  let held: boolean = true;
  const unlock = async (): Promise<void> => {
    if (held) {
      held = false;
      await client.query('COMMIT');
      client.release();
    }
  };
  blocking.push(unlock);
  return unlock;
}

/** The standbys that a commit waits for. */
async function standbys(names: string): Promise<void> {
  await server.query(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
  await server.query('SELECT pg_reload_conf()');
  await until('that the server knows', async () => {
    const [row] = await server.query<{ names: string }>("SELECT current_setting('synchronous_standby_names') AS names");
    return row?.names === names;
  });
  await until('that commits wait, or do not', async () => (await waitsForStandbys()) === (names !== ''));
}

/** Whether a commit waits for a standby: the checkpointer decides it for all, and may hear of a change late. */
async function waitsForStandbys(): Promise<boolean> {
  const client = await server.pool({ application_name: 'blocker' }).connect();
  const state = { ended: false };
  let waited = false;
  const commit = client.query("SELECT pg_logical_emit_message(true, 'test', 'of a commit')").finally(() => (state.ended = true));
  while (!state.ended && !waited) {
    const cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'blocker' AND wait_event = 'SyncRep'";
    waited = (await server.query(cancel)).length > 0;
  }
  await commit;
  client.release();
  return waited;
}

const CLIENTS = `SELECT wait_event FROM pg_stat_activity
  WHERE backend_type = 'client backend' AND application_name NOT IN ('observer', 'blocker')`;

async function backends(condition = 'true'): Promise<number> {
  return (await server.query(`${CLIENTS} AND (${condition})`)).length;
}

describe('a standby that commits wait for, and that is away', () => {
  test('makes no process have more connections than its pool may, in the server too', async () => {
    const max = 5;
    const stores = [await open(server.pool({ max })), await open(server.pool({ max }))];
    await standbys('gone');
    const ends = performance.now() + 3_500;
    const callers = stores.flatMap((store, process) =>
      Array.from({ length: 10 }, async (_, at) => {
        for (let round = 0; performance.now() < ends; round++) {
          await store.acquire(newHold(`${process} ${at} ${round}`, { ttlMs: 1_000 })).catch(() => undefined);
        }
      }),
    );
    let most = 0;
    while (performance.now() < ends) {
      most = Math.max(most, await backends("wait_event = 'SyncRep'"));
      await sleep(50);
    }
    await Promise.all(callers);
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(2 * max);
    await until('that nothing is left waiting', async () => (await backends("wait_event = 'SyncRep'")) === 0);
    // And a listener for each of them. One that was ended may stand still before it goes; idle ones are there for 10 s.
    await until('that there are no more', async () => (await backends()) <= 2 * (max + 1), 5_000);
  });

  test('and pgbouncer in between: what was given up is cancelled in the server', async () => {
    const bouncer = await PgBouncer.start(server, 3);
    try {
      const store = await open(bouncer.pool({ max: 3 }), { listen: false });
      await standbys('gone');
      await Promise.allSettled(['a', 'b', 'c'].map((key) => store.acquire(newHold(key))));
      await until('that nothing is left waiting', async () => (await backends("wait_event = 'SyncRep'")) === 0);
      await standbys('');
      expect((await patient(store).acquire(newHold('d'))).fence).toBeGreaterThan(0);
    } finally {
      await bouncer.stop();
    }
  });

  test('has no grant count that somebody else cancelled the wait of', async () => {
    const store = patient(await open(server.pool()));
    await standbys('gone');
    const wanted = newHold('k', { ttlMs: 60_000 });
    let refusal: unknown;
    void store.acquire(wanted).catch((error: unknown) => (refusal = error));
    // One that is not cancelled within its second is sent again.
    await until('that it is refused', async () => {
      await server.query("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
      return refusal !== undefined;
    });
    expect(refusal).toMatchObject({
      code: 'LOCK_STORE',
      unknown: true,
      detail: expect.stringContaining('the wait for a synchronous standby was cancelled. Make sure that the standby is there.'),
    });
    // It stands in this server, and is confirmed once the standby has it.
    expect((await store.inspect('k'))?.holds).toBe(1);
    await standbys('');
    expect((await store.acquire(wanted)).fence).toBeGreaterThan(0);
  });
});

describe('a row that somebody else has locked', () => {
  test('refuses a call before its time limit, and leaves no backend that waits', async () => {
    const store = patient(await open(server.pool()));
    await store.release(newHold('k'));
    await store.acquire(newHold('k'));
    await blockRow('k');
    let refusal: unknown;
    // The server has 200 ms for it, which is less than a busy machine may stand still.
    await until('a refusal in time', async () => {
      refusal = await store.acquire(newHold('k')).catch((error: unknown) => error);
      expect(refusal).toMatchObject({ code: 'LOCK_STORE' });
      return !(refusal as LockStoreError).unknown;
    });
    expect((refusal as LockStoreError).detail).toContain(
      'another transaction has locked the row or the table, or its commit waits for a standby',
    );
    // Those that were asked before it may have stood still.
    await until('that nothing waits', async () => (await backends("wait_event_type = 'Lock'")) === 0);
  });

  test('leaves nothing in the server that nobody waits for any more, whatever was asked', async () => {
    const store = patient(await open(server.pool({ max: 20 })));
    const calls: Readonly<Record<string, (granted: HoldRecord) => Promise<unknown>>> = {
      acquire: ({ key }) => store.acquire(newHold(key, { limitMs: 75 })),
      exchange: (granted) => store.exchange(granted, newHold(granted.key, { limitMs: 75 }), { name: 'place' }, true),
      join: (granted) => store.join({ ...granted, id: randomUUID() }),
      release: (granted) => store.release(granted),
      leave: ({ key }) => store.leave(key, 'place'),
      forceRelease: ({ key, fence }) => store.forceRelease(key, fence),
    };
    const outcomes = await Promise.all(
      Object.entries(calls).map(async ([key, call]) => {
        const held = newHold(key);
        const granted = { ...held, limitMs: 75, fence: (await store.acquire(held)).fence ?? 0 };
        await blockRow(key);
        return call(granted).catch((error: LockStoreError) => `${key} ${error.code}`);
      }),
    );
    expect(outcomes).toEqual(Object.keys(calls).map((key) => `${key} LOCK_STORE`));
    await until('that nothing waits', async () => (await backends("wait_event_type = 'Lock'")) === 0);
  });

  test('costs the leases of other rows nothing that are renewed together with it', async () => {
    const locks = makeLocks(await open(server.pool()));
    const keys = Array.from({ length: 25 }, (_, at) => `k${at}`);
    const held = await Promise.all(keys.map((key) => locks.acquire(key, { ttl: 4_000 })));
    await blockRow('k7');
    await until('that its own lease is over', () => !held[7]?.isHeld());
    await sleep(500);
    expect(keys.filter((_, at) => !held[at]?.isHeld())).toEqual(['k7']);
    await Promise.all(held.map((lock) => lock.release()));
  });

  test('is renewed when it is free again, and until then nobody knows', async () => {
    const store = patient(await open(server.pool()));
    const holds = await Promise.all(
      ['a', 'b', 'c'].map(async (key) => {
        const first = newHold(key, { ttlMs: 60_000 });
        return { ...first, fence: (await store.acquire(first)).fence ?? 0 };
      }),
    );
    const gone = newHold('gone', { fence: 1 });
    // A renewal that stands still for so long that it is sent again has locked rows, too.
    const renewed = (...answers: (boolean | undefined)[]): Promise<void> =>
      until(`the answers ${answers.join()}`, async () => (await store.renew([...holds, gone])).join() === answers.join());
    const unlock = await blockRow('b');
    await renewed(true, undefined, true, false);
    await unlock();
    await renewed(true, true, true, false);
  });

  test('and that somebody else waits for, is waited for no longer than a renewal may', async () => {
    const store = patient(await open(server.pool()));
    const first = newHold('k', { ttlMs: 60_000 });
    const { fence = 0 } = await store.acquire(first);
    await blockRow('k');
    // It is the next to get the row. A renewal waits for it first, and then for the one that has the row.
    const next = server.pool({ application_name: 'blocker', options: '-c lock_timeout=1400' });
    const round = async (): Promise<number> => {
      let isOver: boolean = false;
      const second = expect(
        next.query("SELECT FROM distributed_lock.lease WHERE key = 'lock:{k}' FOR UPDATE").finally(() => (isOver = true)),
      ).rejects.toThrow('lock timeout');
      await until('that it waits', async () => {
        const waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'blocker'";
        return (await server.query(waiting)).length === 1 || isOver;
      });
      const [row] = await server.query<{ answers: string; took_ms: number }>(
        `SELECT distributed_lock.renew(ARRAY['lock:{k}'], ARRAY[$1::text], ARRAY[$2::bigint], ARRAY[$3::text], ARRAY[5000], ARRAY[''], ARRAY[false], 3000) AS answers,
          (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000)::float8 AS took_ms`,
        [first.owner, fence, first.id],
      );
      expect(row?.answers).toBe('[-1]');
      await second;
      return row?.took_ms ?? Infinity;
    };
    // The whole time for each of the two would be 4.4 s, also where nobody stands still.
    expect(await quickest(4_000, round)).toBeLessThan(4_000);
  });

  test('for a moment, as those do who contend for it, is renewed all the same', async () => {
    const store = patient(await open(server.pool()));
    const first = newHold('k', { ttlMs: 60_000 });
    const held = { ...first, fence: (await store.acquire(first)).fence ?? 0 };
    // On a busy machine a moment may be longer than the renewal waits.
    await until('a renewal that waited, and was made', async () => {
      const unlock = await blockRow('k');
      const renewing = store.renew([held]);
      let waited = false;
      for (let count = 0; !waited && count < 50; count++) {
        waited = (await backends("wait_event_type = 'Lock'")) > 0;
      }
      await unlock();
      return (await renewing)[0] === true && waited;
    });
  });
});

test('a table that grows under a session is not scanned', async () => {
  // Tables of its own, which nobody else scans.
  const schema = 'grown';
  const session = (): Pool => server.pool({ max: 1, application_name: 'session' });
  const scans = async (pool: Pool): Promise<unknown> => {
    await pool.end();
    // A session reports what it scanned when it ends, at the latest.
    await until('that it has ended', async () => (await backends("application_name = 'session'")) === 0);
    return server.query(`SELECT relname, seq_scan FROM pg_stat_user_tables WHERE schemaname = '${schema}' ORDER BY relname`);
  };
  const first = session();
  await new PostgresLockStore(first, { schema }).ensureSchema();
  const before = await scans(first);
  await server.query(`INSERT INTO ${schema}.lease (key, ends) SELECT n, 'epoch' FROM generate_series(1, 50) AS n`);
  await server.query(`INSERT INTO ${schema}.done SELECT n, 1, 'epoch' FROM generate_series(1, 50) AS n`);
  await server.query(`VACUUM ANALYZE ${schema}.lease`);
  await server.query(`VACUUM ANALYZE ${schema}.done`);
  const pool = session();
  const store = await open(pool, { schema, listen: false });
  const use = async (): Promise<void> => {
    for (let round = 0; round < 12; round++) {
      await useAll(patient(store), `key ${round}`);
    }
  };
  await use();
  await server.query(`INSERT INTO ${schema}.lease (key, ends) SELECT 'more ' || n, 'epoch' FROM generate_series(1, 5000) AS n`);
  await use();
  await store.close();
  expect(await scans(pool)).toEqual(before);
});

test('a purge does not read the rows of other prefixes', async () => {
  const schema = 'shared';
  const pool = server.pool({ max: 1, application_name: 'session' });
  const store = new PostgresLockStore(pool, { schema, listen: false });
  await store.ensureSchema();
  opened.push(store);
  await store.open({ prefix: 'lock', warn: () => undefined });
  await server.query(
    `INSERT INTO ${schema}.lease (key, ends) SELECT prefix || ':{' || n || '}', 'epoch'
     FROM unnest(ARRAY['before', 'loc', 'lock', 'lock:', 'lockers', 'past']) AS prefix, generate_series(1, 400) AS n`,
  );
  await server.query(`VACUUM ANALYZE ${schema}.lease`);
  expect(await store.purge({ olderThan: '1m' })).toBe(400);
  await store.close();
  await pool.end();
  await until('that it has ended', async () => (await backends("application_name = 'session'")) === 0);
  const [read] = await server.query<{ rows: number }>(
    `SELECT idx_tup_read::int AS rows FROM pg_stat_user_indexes WHERE schemaname = '${schema}' AND relname = 'lease'`,
  );
  expect(read?.rows).toBeLessThan(1_600);
});

/** Every operation on a key. */
async function useAll(store: PostgresLockStore, key: string): Promise<void> {
  const first = newHold(key);
  const granted = { ...first, fence: (await store.acquire(first)).fence ?? 0 };
  const guest = { ...granted, id: randomUUID() };
  const place = { name: randomUUID() };
  await store.acquire(newHold(key), place);
  await store.join(guest);
  await store.renew([granted, guest]);
  await store.release(guest);
  const next = newHold(key);
  await store.exchange(granted, next, place, true);
  await store.inspect(key);
  await store.leave(key, place.name);
  await store.release(next);
  await store.purge({ olderThan: '1m' });
}
