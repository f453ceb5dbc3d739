/** @jest-environment-options {"allowedStopMs": 600000} */
// The claim is that work ends, however long the machine stands still meanwhile.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Queue } from 'bullmq';
import { createReadStream, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockService } from '../../lib/nest/lock.service';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { Archive, exportWorker, importByCheckpoints, Imports, mysqlQuery, pgQuery, Reports, runProgram } from '../readme/long-jobs';
import { makeLocks } from '../support/make-locks';
import { MySqlServer } from '../support/mysql-server';
import { PostgresServer } from '../support/postgres-server';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';

let redis: RedisServer;
let store: RedisLockStore;
let locks: LockService;
let folder: string;

beforeAll(async () => {
  redis = await RedisServer.start();
  store = new RedisLockStore(redis.url);
  await store.open({ prefix: 'lock', warn: () => undefined });
  locks = makeLocks(store, { wait: 60_000 });
  folder = mkdtempSync(join(tmpdir(), 'long-jobs-'));
});
afterAll(async () => {
  await locks?.shutdown();
  await store?.close();
  await redis?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** An operator releases the lock, as soon as it is held. */
async function loseLock(key: string): Promise<void> {
  await until(`${key} is held`, async () => (await locks.operations.inspect(key)) !== null);
  const { fence } = (await locks.operations.inspect(key)) as { fence: number };
  expect(await locks.operations.forceRelease(key, { fence })).toBe(true);
}

/** The error that a call rejects with; it is watched from the start, so that it is never unhandled. */
function rejectionOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => 'it resolved',
    (error: unknown) => error,
  );
}

const LOST = { code: 'LOCK_LOST', reason: 'forced' };

test('fetch: the server sees its request end', async () => {
  let isOpen = false;
  const server: Server = createServer((request, response) => {
    isOpen = true;
    // Written, so that the client is inside, and never ended.
    response.write('begins');
    response.once('close', () => (isOpen = false));
    request.resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const ended = rejectionOf(locks.attach(new Reports()).send('42', url));
  await until('the request has arrived', () => isOpen);
  await loseLock('report:42');
  expect(await ended).toMatchObject(LOST);
  await until('the request has ended', () => !isOpen);
  await new Promise((resolve) => server.close(resolve));
});

test('pg: PostgreSQL runs the query no more, and its connection is not used again', async () => {
  const server = await PostgresServer.start();
  try {
    const [pool, control] = [server.pool({ max: 1 }), server.pool({ max: 1 })];
    const running = async (): Promise<number> =>
      (await server.query(`SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep(600%'`)).length;
    const { rows } = await pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    const ended = rejectionOf(locks.withLock('pg', (lock) => pgQuery(pool, control, lock.signal, 'SELECT pg_sleep(600)')));
    await until('the query runs', async () => (await running()) === 1);
    await loseLock('pg');
    expect(await ended).toMatchObject(LOST);
    await until('the query has ended', async () => (await running()) === 0);
    const after = await pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    expect(after.rows[0]?.pid).not.toBe(rows[0]?.pid);
    expect(await locks.withLock('pg', (lock) => pgQuery(pool, control, lock.signal, 'SELECT 1 AS one'))).toMatchObject({
      rows: [{ one: 1 }],
    });
  } finally {
    await server.stop();
  }
});

test('pg and mysql2: a server that is killed during a query fails the call, and not the process', async () => {
  const { signal } = new AbortController();
  const postgres = await PostgresServer.start();
  const mysql = await MySqlServer.start();
  try {
    const byPg = rejectionOf(pgQuery(postgres.pool(), postgres.pool(), signal, 'SELECT pg_sleep(600)'));
    const byMySql = rejectionOf(mysqlQuery(mysql.pool().promise(), mysql.pool().promise(), signal, 'SELECT SLEEP(600)'));
    const count = async (rows: Promise<unknown[]>): Promise<number> => (await rows).length;
    await until('the queries run', async () => {
      const running = [
        count(postgres.query(`SELECT FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep(600%'`)),
        count(mysql.query(`SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SLEEP(600%'`)),
      ];
      return (await Promise.all(running)).every((found) => found === 1);
    });
    await Promise.all([postgres.kill(), mysql.kill()]);
    expect(await byPg).toBeInstanceOf(Error);
    expect(await byMySql).toBeInstanceOf(Error);
  } finally {
    await Promise.all([postgres.stop(), mysql.stop()]);
  }
}, 120_000);

test('mysql2: the server runs the query no more, and its connection is not used again', async () => {
  const server = await MySqlServer.start();
  try {
    const [pool, control] = [server.pool({ connectionLimit: 1 }).promise(), server.pool({ connectionLimit: 1 }).promise()];
    const running = async (): Promise<number> =>
      (await server.query(`SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SLEEP(600%'`)).length;
    const idOf = async (): Promise<unknown> => JSON.stringify((await pool.query('SELECT CONNECTION_ID() AS id'))[0]);
    const before = await idOf();
    const ended = rejectionOf(locks.withLock('mysql', (lock) => mysqlQuery(pool, control, lock.signal, 'SELECT SLEEP(600)')));
    await until('the query runs', async () => (await running()) === 1);
    await loseLock('mysql');
    expect(await ended).toMatchObject(LOST);
    await until('the query has ended', async () => (await running()) === 0);
    expect(await idOf()).not.toBe(before);
    expect(await locks.withLock('mysql', (lock) => mysqlQuery(pool, control, lock.signal, 'SELECT 1 AS one'))).toEqual([{ one: 1 }]);
  } finally {
    await server.stop();
  }
}, 120_000);

test('streams: the source is closed, and the file grows no more', async () => {
  const path = join(folder, 'rows');
  const rows = Readable.from(
    (async function* endless() {
      for (;;) {
        yield 'row\n';
        await sleep(5);
      }
    })(),
  );
  const ended = rejectionOf(locks.attach(new Archive()).store(path, () => rows));
  await until('rows are written', () => statSync(path, { throwIfNoEntry: false })?.size !== undefined && statSync(path).size > 0);
  await loseLock(`archive:${path}`);
  expect(await ended).toMatchObject(LOST);
  expect(rows.destroyed).toBe(true);
  const { size } = statSync(path);
  await sleep(200);
  expect(statSync(path).size).toBe(size);
});

test('streams: one that fails at once fails the call that waited for its lock, and not the process', async () => {
  const path = join(folder, 'late');
  const lock = await locks.acquire(`archive:${path}`);
  const ended = rejectionOf(locks.attach(new Archive()).store(path, () => createReadStream(join(folder, 'missing'))));
  await sleep(100);
  await lock.release();
  expect(await ended).toMatchObject({ code: 'ENOENT' });
});

describe('child processes: the program is gone when the call has ended', () => {
  test.each([
    ['one that ends at SIGTERM', ''],
    ['one that does not heed SIGTERM', `process.on('SIGTERM', () => {});`],
  ])('%s', async (_which, start) => {
    const file = join(folder, `pid-${start.length}`);
    const program = `${start} require('fs').writeFileSync(process.argv[1], String(process.pid)); setInterval(() => {}, 1000);`;
    const key = `child-${start.length}`;
    const ended = rejectionOf(
      locks.withLock(key, { ttl: '20s' }, (lock) => runProgram(lock.signal, process.execPath, ['-e', program, file])),
    );
    await until('the program runs', () => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0);
    const pid = Number(readFileSync(file, 'utf8'));
    expect(process.kill(pid, 0)).toBe(true);
    await loseLock(key);
    expect(await ended).toMatchObject({ ...LOST, bodyRuns: false });
    expect(() => process.kill(pid, 0)).toThrow(/ESRCH/);
  });

  test('a program that fails, or is not there, fails the call', async () => {
    const { signal } = new AbortController();
    await expect(runProgram(signal, process.execPath, ['-e', 'process.exit(3)'])).rejects.toThrow('ended with 3');
    await expect(runProgram(signal, '/no/such/program', [])).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('BullMQ', () => {
  test('the work of a job stops with its lock, and the job fails as lost; cancelling the job stops it too', async () => {
    const connection = { host: '127.0.0.1', port: redis.port };
    const queue = new Queue('exports', { connection });
    const states: string[] = [];
    const worker = exportWorker(locks, connection, async (customerId, signal) => {
      states.push(`${customerId} begins`);
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      states.push(`${customerId} stops`);
      signal.throwIfAborted();
    });
    worker.on('error', () => undefined);
    try {
      const lost = await queue.add('export', { customerId: '42' });
      await until('the job runs', () => states.length === 1);
      await loseLock('export:42');
      await until('the job has failed', () => lost.isFailed());
      expect((await queue.getJob(lost.id as string))?.failedReason).toMatch(/lock was lost before the call ended \(forced\)/i);
      expect(states).toEqual(['42 begins', '42 stops']);

      const cancelled = await queue.add('export', { customerId: '43' });
      await until('the job runs', () => states.length === 3);
      worker.cancelJob(cancelled.id as string, 'not wanted');
      await until('the job has failed', () => cancelled.isFailed());
      expect(states.slice(2)).toEqual(['43 begins', '43 stops']);
      await until('its lock is free', async () => (await locks.operations.inspect('export:43')) === null);
    } finally {
      await worker.close(true);
      await queue.close();
    }
  });
});

test('a loop: no batch is written after the loss', async () => {
  let written = 0;
  const batches = (async function* endless() {
    for (;;) {
      yield 'batch';
    }
  })();
  const ended = rejectionOf(
    locks.attach(new Imports()).importAll('a', batches, async () => {
      written++;
    }),
  );
  await until('batches are written', () => written > 0);
  await loseLock('import:a');
  expect(await ended).toMatchObject(LOST);
  const before = written;
  await sleep(300);
  expect(written).toBe(before);
});

test('Checkpoints: each one extends the lease, and the next one after a loss ends the job', async () => {
  const left: number[] = [];
  const batches = async function* (): AsyncGenerator<() => Promise<void>> {
    for (let batch = 0; batch < 3; batch++) {
      yield async () => {
        left.push((await store.inspect('import:b'))?.remainingMs ?? 0);
        await sleep(300);
        if (batch === 1) {
          await loseLock('import:b');
        }
      };
    }
  };
  expect(await rejectionOf(importByCheckpoints(locks, 'b', batches()))).toMatchObject(LOST);
  expect(left).toHaveLength(2);
  // The second checkpoint came 300 ms after the first, which its extension has made good.
  expect(left[1]).toBeGreaterThan((left[0] as number) - 300);
});
