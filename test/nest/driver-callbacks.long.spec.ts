import { AsyncResource } from 'node:async_hooks';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { outsideLocks, type LockService } from 'nestjs-distributed-lock';
import { MemoryLockStore } from '../../lib/memory/memory-lock-store';
import { makeLocks } from '../support/make-locks';
import { MySqlServer } from '../support/mysql-server';
import { PostgresServer } from '../support/postgres-server';
import { saying } from '../support/saying';

/** A pool that is asked in callback style. */
interface CallbackPool {
  query(sql: string, callback: (error: unknown) => void): unknown;
  end(): unknown;
}

let postgres: PostgresServer;
let mysql: MySqlServer;
let locks: LockService;
let pool: CallbackPool;

beforeAll(async () => {
  [postgres, mysql] = await Promise.all([PostgresServer.start(), MySqlServer.start()]);
});
afterAll(async () => {
  await Promise.all([postgres?.stop(), mysql?.stop()]);
});
beforeEach(() => {
  locks = makeLocks(new MemoryLockStore());
});
afterEach(async () => {
  await pool.end();
});

const POOLS: readonly (readonly [string, () => CallbackPool])[] = [
  ['pg', () => postgres.pool({ max: 1 }) as unknown as CallbackPool],
  ['mysql2', () => mysql.pool({ connectionLimit: 1 }) as unknown as CallbackPool],
];

/** Runs `task` in a callback of the pool, which `bind` may bind to its caller. */
function inCallback<T>(task: () => Promise<T>, bind: (callback: () => void) => () => void = (callback) => callback): Promise<T> {
  return new Promise((resolve, reject) => {
    pool.query(
      'SELECT 1',
      bind(() => task().then(resolve, reject)),
    );
  });
}

describe.each(POOLS)('a callback of %s', (_name, make) => {
  /** A request asks the pool while another one holds the lock, in which the connection was opened. */
  async function besideAnother(bind?: (callback: () => void) => () => void): Promise<{ own: number; others: unknown }> {
    pool = make();
    return locks.withLock('k', async ({ fence }) => {
      await inCallback(async () => undefined);
      const locked = (): Promise<unknown> => locks.withLock('k', { wait: 300 }, (lock) => lock.fence);
      const others = await outsideLocks(() => inCallback(locked, bind)).catch((error: unknown) => error);
      return { own: fence, others };
    });
  }

  test('runs inside the lock of the request in which the connection was opened, as the limits say', async () => {
    const { own, others } = await besideAnother();
    expect(others).toBe(own);
  });

  test('that is bound waits for the lock like any other call', async () => {
    const { others } = await besideAnother((callback) => AsyncResource.bind(callback));
    expect(others).toMatchObject({ code: 'LOCK_NOT_ACQUIRED', reason: 'busy' });
  });

  test('that has lost its own lock is told what to bind, and enters once that is done', async () => {
    pool = make();
    await inCallback(async () => undefined);
    const locked = (): Promise<string> => locks.withLock('k', { wait: 300 }, () => 'in');
    const unbound = locks.withLock('k', () => inCallback(locked));
    await expect(unbound).rejects.toThrow(saying(/holder is a call of this process.*AsyncResource\.bind/));
    expect(await locks.withLock('k', () => inCallback(locked, (callback) => AsyncResource.bind(callback)))).toBe('in');
  });
});

test('a callback for which a connection is given back runs inside the lock of the request that gave it', async () => {
  const waited = postgres.pool({ max: 1 });
  pool = waited as unknown as CallbackPool;
  const client = await waited.connect();
  const locked = (): Promise<unknown> => locks.withLock('k', { wait: 300 }, ({ fence }) => fence);
  const asking = new Promise((resolve, reject) => {
    waited.connect((_error, given, release) => {
      release();
      expect(given).toBeDefined();
      locked().then(resolve, reject);
    });
  });
  const own = await locks.withLock('k', async ({ fence }) => {
    client.release();
    expect(await asking).toBe(fence);
    return fence;
  });
  expect(own).toBeGreaterThan(0);
});

const PROMISING: readonly (readonly [string, () => { query(sql: string): Promise<unknown>; end(): unknown }])[] = [
  ['pg', () => postgres.pool({ max: 1 })],
  ['mysql2', () => mysql.pool({ connectionLimit: 1 }).promise()],
];
test.each(PROMISING)('a promise of %s comes back to its caller', async (_name, make) => {
  const promising = make();
  pool = promising as unknown as CallbackPool;
  const outcome = await locks.withLock('k', async () => {
    await promising.query('SELECT 1');
    const other = outsideLocks(async () => {
      await promising.query('SELECT 1');
      return locks.withLock('k', { wait: 300 }, () => 'in');
    });
    return other.catch((error: { code: string }) => error.code);
  });
  expect(outcome).toBe('LOCK_NOT_ACQUIRED');
});

test('a call that waits for others one after the other is told nothing of callbacks', async () => {
  pool = postgres.pool({ max: 1 }) as unknown as CallbackPool;
  let leave: () => void = () => undefined;
  const first = await locks.acquire('k');
  const second = locks.withLock('k', () => new Promise<void>((resolve) => (leave = resolve)));
  const refused = locks.withLock('k', { wait: 500 }, () => 1);
  await first.release();
  await expect(refused).rejects.toThrow(saying(/it is held by .*\. Raise wait, or shorten what runs inside the lock\.$/));
  leave();
  await second;
});
