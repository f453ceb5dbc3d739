import { jest } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockService } from '../../lib/nest/lock.service';
import { MySqlLockStore, type MySqlLockStoreOptions } from '../../lib/mysql/index';
import { presenceName } from '../../lib/mysql/connections/sleeper';
import { makeLocks } from '../support/make-locks';
import { DATABASE, MySqlServer } from '../support/mysql-server';
import { newHold } from '../support/new-hold';
import { until } from '../support/until';

let server: MySqlServer;
const opened: MySqlLockStore[] = [];
const warnings: string[] = [];

beforeAll(async () => {
  server = await MySqlServer.start();
  await new MySqlLockStore(server.pool()).ensureSchema();
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
  warnings.splice(0);
});
afterAll(() => server.stop());

async function open(options?: MySqlLockStoreOptions, pool = server.pool()): Promise<LockService> {
  const store = new MySqlLockStore(pool, options);
  await store.open({ prefix: 'lock', warn: (message) => message.includes('innodb_flush') || warnings.push(message) });
  opened.push(store);
  return makeLocks(store);
}

/** The connections on which processes sleep while they wait. */
async function sleepers(): Promise<{ id: number }[]> {
  return server.query(`SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT CASE WHEN%' AND db = '${DATABASE}'`);
}

async function questions(): Promise<number> {
  const [row] = await server.query<{ Value: string }>(`SHOW GLOBAL STATUS LIKE 'Questions'`);
  return Number(row?.Value);
}

/** How many statements the server is asked meanwhile, but for those that count them. */
async function askedWhile(action: () => Promise<unknown>): Promise<number> {
  const before = await questions();
  await action();
  return (await questions()) - before - 1;
}

/**
 * The lower quartile of the times from the release in one process to the grant in another, in milliseconds: three of
 * four take longer. The server may stand still now and then.
 */
async function handOverMs(one: LockService, other: LockService): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < 12; round++) {
    const held = await one.acquire('hand over');
    let grantedAt = 0;
    const waiting = other.withLock('hand over', { wait: 30_000 }, () => (grantedAt = performance.now()));
    await until('that it waits', async () => (await one.operations.inspect('hand over'))?.waiters.length === 1);
    await sleep(60);
    const releasedAt = performance.now();
    await held.release();
    await waiting;
    times.push(grantedAt - releasedAt);
  }
  return times.toSorted((first, second) => first - second)[2] as number;
}

test('a process that waits sleeps on one connection, is woken by its turn, and keeps none when it waits no longer', async () => {
  const [holder, waiter] = [await open(), await open()];
  const held = await holder.acquire('k');
  const waiting = waiter.withLock('k', { wait: 60_000 }, () => 'in');
  await until('that it sleeps', async () => (await sleepers()).length === 1);
  await held.release();
  expect(await waiting).toBe('in');
  await until('that nobody sleeps', async () => (await sleepers()).length === 0);
  expect(warnings).toEqual([]);
});

test('a wake-up takes less time than the shortest of polls, and polls take less than the next one', async () => {
  const [waking, polling] = [{}, { poll: true }];
  let [woken, polled] = [Infinity, 0];
  // With a poll every 50 ms, a turn is found after 12 ms or more three times of four. Where the server stands still
  // meanwhile, it is measured again.
  for (let measured = 0; measured < 4 && woken > polled / 1.5; measured++) {
    woken = await handOverMs(await open(waking), await open(waking));
    polled = await handOverMs(await open(polling), await open(polling));
  }
  console.log(`A hand-over takes ${woken.toFixed(1)} ms by KILL QUERY, and ${polled.toFixed(1)} ms by polling (lower quartiles).`);
  expect(woken).toBeLessThan(polled / 1.5);
}, 120_000);

test('nothing is asked while nobody waits', async () => {
  const locks = await open();
  const held = await locks.acquire('k', { ttl: '60s' });
  expect(await askedWhile(() => sleep(1_000))).toBe(0);
  await held.release();
});

test('a place whose turn has passed, and which the free lock is then granted to, is looked for no more', async () => {
  await Promise.all([open(), open()]);
  const [one, other] = opened as [MySqlLockStore, MySqlLockStore];
  const [held, wanted] = [newHold('passed', { ttlMs: 60_000 }), newHold('passed')];
  const { fence = 0 } = await one.acquire(held);
  expect(await other.acquire(wanted, { name: 'place' })).toMatchObject({ holder: { by: 'tester' } });
  // For two seconds after a refusal, no plain statement is tried; the turn passes after one.
  await sleep(2_100);
  await one.release({ ...held, fence });
  await sleep(1_100);
  expect(await other.acquire(wanted, { name: 'place' })).toMatchObject({ fence: expect.any(Number) as number });
  await until('that nothing is asked', async () => (await askedWhile(() => sleep(700))) === 0, 10_000);
});

test('a plain statement grants only while the clock of the server is known from the last ten seconds', async () => {
  const locks = await open();
  const called = async (): Promise<number> => {
    const [row] = await server.query<{ Value: string }>(`SHOW GLOBAL STATUS LIKE 'Com_call_procedure'`);
    return Number(row?.Value);
  };
  const calledBy = async (work: () => Promise<unknown>): Promise<number> => {
    const before = await called();
    await work();
    return (await called()) - before;
  };
  let pairs = 0;
  // A key whose last release was less than ten seconds ago is released by the procedure.
  const pair = (): Promise<unknown> => locks.withLock(`clock ${pairs++}`, () => undefined);
  await pair();
  expect(await calledBy(pair)).toBe(0);
  const now = performance.now.bind(performance);
  const later = jest.spyOn(performance, 'now').mockImplementation(() => now() + 11_000);
  try {
    expect(await calledBy(pair)).toBe(1);
    expect(await calledBy(pair)).toBe(0);
  } finally {
    later.mockRestore();
  }
});

test.each([
  ['that is woken', {}],
  ['that polls', { poll: true }],
])('a process %s sends at most 50 statements a second, for however many keys it waits', async (_, options) => {
  const [holder, waiter] = [await open(), await open(options)];
  const keys = Array.from({ length: 200 }, (__, at) => `many ${at}`);
  const held = await Promise.all(keys.map((key) => holder.acquire(key, { ttl: '60s' })));
  const waiting = Promise.all(keys.map((key) => waiter.withLock(key, { wait: 60_000 }, () => key)));
  // Those that queued before their process could be woken have asked again by then.
  const places = `name LIKE 'lock:{many %' AND queue IS NOT NULL AND queue ${'poll' in options ? '' : 'NOT '}LIKE '%~%'`;
  await until('that all wait', async () => {
    return (await server.query(`SELECT 1 FROM ${DATABASE}.distributed_lock_lease WHERE ${places}`)).length === keys.length;
  });
  const startedAt = performance.now();
  const asked = await askedWhile(() => sleep(2_000));
  expect(asked / ((performance.now() - startedAt) / 1_000)).toBeLessThanOrEqual(50);
  await Promise.all(held.map((lock) => lock.release()));
  expect(await waiting).toEqual(keys);
});

test('a pool of three serves a thousand waiters', async () => {
  const [holder, waiter] = [await open(), await open({}, server.pool({ connectionLimit: 3 }))];
  const held = await holder.acquire('k', { ttl: '60s' });
  const other = await holder.acquire('other', { ttl: '60s' });
  let served = 0;
  const waiting = Promise.all([
    ...Array.from({ length: 999 }, () => waiter.withLock('k', { wait: 60_000 }, () => served++)),
    waiter.withLock('other', { wait: 60_000 }, () => served++),
  ]);
  await until('that it sleeps', async () => (await sleepers()).length === 1);
  await held.release();
  await other.release();
  await waiting;
  expect(served).toBe(1_000);
});

test('stores that share a pool leave a connection to the locks, however many of them wait', async () => {
  const shared = server.pool({ connectionLimit: 4 });
  const [holder, one, other] = [await open(), await open({}, shared), await open({}, shared)];
  const held = await Promise.all(['first', 'second'].map((key) => holder.acquire(key, { ttl: '60s' })));
  const own = await Promise.all([one.acquire('of one', { ttl: '4s' }), other.acquire('of other', { ttl: '4s' })]);
  const waiting = [one.withLock('first', { wait: 60_000 }, () => 1), other.withLock('second', { wait: 60_000 }, () => 2)];
  await until('that one sleeps', async () => (await sleepers()).length === 1);
  for (const endsAt = performance.now() + 6_000; performance.now() < endsAt; await sleep(100)) {
    expect((await sleepers()).length).toBeLessThanOrEqual(1);
  }
  // It may be between two sleeps.
  await until('that it still sleeps', async () => (await sleepers()).length === 1);
  expect(own.map((lock) => lock.isHeld())).toEqual([true, true]);
  await Promise.all(held.map((lock) => lock.release()));
  expect(await Promise.all(waiting)).toEqual([1, 2]);
  await Promise.all(own.map((lock) => lock.release()));
});

test.each([1, 2])('a pool with a connectionLimit of %s polls, since the locks need a connection', async (connectionLimit) => {
  await until('that those of other tests are gone', async () => (await sleepers()).length === 0);
  const [holder, waiter] = [await open(), await open({}, server.pool({ connectionLimit }))];
  const held = await holder.acquire('k', { ttl: '60s' });
  const waiting = waiter.withLock('k', { wait: 60_000 }, () => 'in');
  await until('that it waits', async () => (await holder.operations.inspect('k'))?.waiters.length === 1);
  expect(await sleepers()).toEqual([]);
  await held.release();
  expect(await waiting).toBe('in');
});

test('a process whose sleep is cut off finds its turn all the same, and sleeps again', async () => {
  const [holder, waiter] = [await open(), await open()];
  const held = await holder.acquire('k', { ttl: '60s' });
  const waiting = waiter.withLock('k', { wait: 60_000 }, () => 'in');
  let id = 0;
  await until('that it sleeps', async () => {
    id = (await sleepers())[0]?.id ?? 0;
    return id > 0;
  });
  await server.query(`KILL CONNECTION ${id}`);
  await until('that it sleeps again', async () => (await sleepers()).some((each) => each.id !== id));
  await held.release();
  expect(await waiting).toBe('in');
});

test('a waiter that is gone is passed over at once', async () => {
  const gone = new MySqlLockStore(server.pool());
  await gone.open({ prefix: 'lock', warn: () => undefined });
  const [holder, waiter] = [await open(), await open()];
  const held = await holder.acquire('k', { ttl: '60s' });
  makeLocks(gone).withLock('k', { wait: 60_000 }, () => undefined).catch(() => undefined); // prettier-ignore
  await until('that it sleeps', async () => (await sleepers()).length === 1);
  // Its place is that of a process that can be woken, once it has asked again.
  const queue = async (): Promise<string> =>
    String(
      (await server.query<{ queue: Buffer | null }>(`SELECT queue FROM ${DATABASE}.distributed_lock_lease WHERE name = 'lock:{k}'`))[0]
        ?.queue,
    );
  await until('that it can be woken', async () => !(await queue()).includes('~'));
  const waiting = waiter.withLock('k', { wait: 60_000 }, () => 'in');
  await until('that both wait', async () => (await holder.operations.inspect('k'))?.waiters.length === 2);
  await gone.close();
  await until('that the first is gone', async () => (await sleepers()).length === 1);
  await held.release();
  expect(await waiting).toBe('in');
  // A turn of the process that is gone would have lasted a second.
  expect((await queue()).includes(gone.process)).toBe(false);
});

test('a turn of a place that nobody waits for any more is given up, and not asked for again and again', async () => {
  const [holder, waiter] = [await open(), await open()];
  const held = await holder.acquire('k', { ttl: '60s' });
  const waiting = waiter.withLock('k', { wait: 60_000 }, () => 'in');
  await until('that it sleeps', async () => (await sleepers()).length === 1);
  // A place before it in the queue that this process has given up, and whose message to the server was lost.
  const row = `${DATABASE}.distributed_lock_lease SET queue = concat(';', trim(BOTH ';' FROM replace(queue, '~', '')), 'x', queue)`;
  await server.query(`UPDATE ${row} WHERE name = 'lock:{k}'`);
  const asked = await askedWhile(async () => {
    await held.release();
    expect(await waiting).toBe('in');
  });
  expect(asked).toBeLessThan(60);
});

test('a turn of a place that nobody waits for any more is given up by one statement, however long that waits for the row', async () => {
  const [holder, waiter] = [await open(), await open({ poll: true })];
  const held = await holder.acquire('k', { ttl: '60s' });
  const waiting = waiter.withLock('k', { wait: 60_000 }, () => 'in');
  await until('that it waits', async () => (await holder.operations.inspect('k'))?.waiters.length === 1);
  const [hands, locks] = await Promise.all([0, 1].map(() => server.pool().promise().getConnection()));
  const waitsForRow = async (): Promise<number> => {
    // The server shows what it showed before to whoever reads this table again within 100 ms, also again and again.
    await sleep(150);
    const [row] = await server.query<{ count: number }>(
      `SELECT count(*) AS count FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'`,
    );
    return Number(row?.count);
  };
  await hands?.query('BEGIN');
  const turn = `turn = concat(trim(BOTH ';' FROM replace(queue, '~', '')), 'x'), ends = ends + 60000000`;
  await hands?.query(`UPDATE distributed_lock_lease SET ${turn} WHERE name = 'lock:{k}'`);
  await locks?.query('BEGIN');
  const isLocked = locks?.query(`SELECT 1 FROM distributed_lock_lease WHERE name = 'lock:{k}' FOR UPDATE`);
  await until('that it waits for the row', async () => (await waitsForRow()) === 1);
  await hands?.query('COMMIT');
  await isLocked;
  await until('that the turn is given up', async () => (await waitsForRow()) > 0);
  const counts: number[] = [];
  try {
    // Twelve polls. The statement ends by itself after a second, which may pass meanwhile on a busy machine, and is not
    // sent again.
    for (let reads = 0; reads < 4; reads++) {
      counts.push(await waitsForRow());
    }
  } finally {
    await locks?.query('ROLLBACK');
    hands?.release();
    locks?.release();
  }
  expect(Math.max(...counts)).toBeLessThan(2);
  await held.release();
  expect(await waiting).toBe('in');
});

test('a place that leaves is not notified again while the statement that says so waits for the row', async () => {
  await open();
  await open({ poll: true });
  const [holder, waiter] = opened as [MySqlLockStore, MySqlLockStore];
  const notices: string[] = [];
  waiter.onTurn({ turn: (key, name) => notices.push(`${key} ${name}`), recheck: () => undefined });
  const connection = await server.pool().promise().getConnection();
  try {
    // Again where a busy machine leaves the statement less time than a few polls take: it ends by itself after a
    // second.
    for (let round = 0, looks = 0; looks < 5; round++) {
      const key = `left ${round}`;
      const held = newHold(key, { ttlMs: 60_000, limitMs: 20_000 });
      const { fence = 0 } = await holder.acquire(held);
      await waiter.acquire(newHold(key, { limitMs: 20_000 }), { name: 'place' });
      // The process looks for turns as long as it has any other place.
      await waiter.acquire(newHold(key, { limitMs: 20_000 }), { name: 'next' });
      await holder.release({ ...held, fence });
      await until('the turn', () => notices.includes(`${key} place`));
      await connection.query('BEGIN');
      await connection.query(`SELECT 1 FROM distributed_lock_lease WHERE name = 'lock:{${key}}' FOR UPDATE`);
      const statement = { isOver: false };
      const leaving = waiter.leave(key, 'place').catch(() => undefined);
      void leaving.then(() => (statement.isOver = true));
      for (looks = 0; looks < 8 && !statement.isOver; looks++) {
        await sleep(50);
        expect(statement.isOver ? ['over'] : notices.filter((notice) => notice === `${key} place`)).toHaveLength(1);
      }
      await connection.query('ROLLBACK');
      await leaving;
    }
  } finally {
    connection.destroy();
  }
});

test('a process can be woken for a second after its last place is gone: an acquire may be on its way to queue another one', async () => {
  await open();
  await open();
  const [holder, waiter] = opened as [MySqlLockStore, MySqlLockStore];
  const canBeWoken = async (): Promise<boolean> => {
    const [row] = await server.query<{ id: unknown }>('SELECT is_used_lock(?) AS id', [presenceName(waiter.process)]);
    return row?.id != null;
  };
  const held = newHold('k', { ttlMs: 60_000, limitMs: 20_000 });
  const { fence = 0 } = await holder.acquire(held);
  await waiter.acquire(newHold('k', { limitMs: 20_000 }), { name: 'place' });
  await until('that it can be woken', canBeWoken);
  await waiter.leave('k', 'place');
  const leftAt = performance.now();
  await until('that it cannot', async () => !(await canBeWoken()));
  expect(performance.now() - leftAt).toBeGreaterThan(990);
  await holder.release({ ...held, fence });
});

test('a process that sleeps is woken also for a place that it queued while it polled', async () => {
  const held = await (await open()).acquire('k', { ttl: '60s' });
  await server.query(
    `UPDATE ${DATABASE}.distributed_lock_lease SET queue = ';host:7:abcdef01:x~;', queue_ends = ends WHERE name = 'lock:{k}'`,
  );
  const connection = await server.pool().promise().getConnection();
  await connection.query(`SELECT get_lock('${presenceName('host:7:abcdef01')}', 0)`);
  const sleeping = connection.query('SELECT sleep(50)').catch((error: unknown) => error);
  await until('that it sleeps', async () => (await server.query(`SELECT 1 FROM information_schema.processlist WHERE info = 'SELECT sleep(50)'`)).length === 1); // prettier-ignore
  await held.release();
  await sleeping;
  connection.destroy();
});

test('a process that is handed turns by another database user finds them all the same, warns and polls from then on', async () => {
  for (const user of ['one', 'two']) {
    await server.query(`CREATE USER ${user} IDENTIFIED BY ''`);
    await server.query(`GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON ${DATABASE}.* TO ${user}`);
  }
  const [holder, waiter] = [await open({}, server.pool({ user: 'one' })), await open({}, server.pool({ user: 'two' }))];
  /** Hands the lock over, to a process that sleeps or polls. */
  const handOver = async (count: number): Promise<void> => {
    const held = await holder.acquire('k', { ttl: '60s' });
    const waiting = waiter.withLock('k', { wait: 60_000 }, () => 'in');
    await until('that it waits', async () => (await holder.operations.inspect('k'))?.waiters.length === 1);
    await until('that it sleeps', async () => (await sleepers()).length >= count);
    await held.release();
    expect(await waiting).toBe('in');
  };
  for (let round = 0; warnings.length === 0 && round < 40; round++) {
    await handOver(1);
  }
  expect(warnings).toEqual([
    expect.stringMatching(/does not wake it by KILL QUERY. Make sure that all processes have the same database user/),
  ]);
  await handOver(0);
  expect(await sleepers()).toEqual([]);
});
