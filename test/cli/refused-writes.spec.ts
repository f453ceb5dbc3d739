import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OWN_KEY } from '../../console/cli/doctor/writes-finding';
import { PostgresLockStore } from '../../lib/postgres/postgres-lock-store';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { cli, cliUntil } from '../support/cli';
import { newHold } from '../support/new-hold';
import { PostgresServer } from '../support/postgres-server';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';

/** A fault caused in a server, and its end. */
type Refusal = readonly [
  name: string,
  strike: (server: RedisServer) => Promise<unknown>,
  mend: (server: RedisServer) => Promise<unknown>,
  said: RegExp,
];

const REDIS: readonly Refusal[] = [
  ['MISCONF', failToSave, ({ client }) => client.config('SET', 'save', ''), /MISCONF .*see its log, and make room\.$/m],
  [
    'NOREPLICAS',
    ({ client }) => client.config('SET', 'min-replicas-to-write', 1),
    ({ client }) => client.config('SET', 'min-replicas-to-write', 0),
    /NOREPLICAS .*Start its replicas, or lower its min-replicas-to-write\.$/m,
  ],
  [
    'CLIENT PAUSE WRITE',
    ({ client }) => client.client('PAUSE', 600_000, 'WRITE'),
    ({ client }) => client.client('UNPAUSE'),
    /no reply within \d+ ms.* CLIENT PAUSE holds up writes/m,
  ],
  [
    'memory of which nothing can be evicted',
    async ({ client }) => {
      await client.config('SET', 'maxmemory-policy', 'volatile-lru');
      await client.config('SET', 'maxmemory', 1);
    },
    async ({ client }) => {
      await client.config('SET', 'maxmemory', 0);
      await client.config('SET', 'maxmemory-policy', 'noeviction');
    },
    /OOM /m,
  ],
];

const folder = mkdtempSync(join(tmpdir(), 'lock-unsaved-'));

/** A snapshot fails where its folder has gone. */
async function failToSave({ client }: RedisServer): Promise<void> {
  rmSync(folder, { recursive: true });
  await client.config('SET', 'save', '3600 1');
  await client.bgsave();
  await until('a snapshot that fails', async () => (await client.info('persistence')).includes('rdb_last_bgsave_status:err'));
}

describe('in Redis', () => {
  let server: RedisServer;

  beforeAll(async () => {
    server = await RedisServer.start('--dir', folder);
  });
  afterAll(() => server.stop());

  test.each(REDIS)('the doctor fails where the server refuses writes: %s', async (_name, strike, mend, said) => {
    const env = { LOCKS_REDIS: server.url };
    await strike(server);
    const refused = await cli(env, ['doctor']);
    await mend(server);
    expect(refused).toMatchObject({ code: 1, err: '' });
    expect(refused.out.match(/^FAIL.*$/gm)).toEqual([expect.stringMatching(/^FAIL {2}server: writes: /)]);
    expect(refused.out).toMatch(said);
    await cliUntil(env, ['doctor'], ({ code, out }) => code === 0 && /^ok {4}server: writes: A lock was acquired within /m.test(out));
  });

  test('the doctor says so where another one has its lock', async () => {
    const store = new RedisLockStore(server.url);
    const hold = newHold(OWN_KEY, { ttlMs: 600_000 });
    await until('the lock', async () => (await store.acquire(hold)).fence !== undefined);
    const busy = await cli({ LOCKS_REDIS: server.url }, ['doctor']);
    await store.release(hold);
    await store.close();
    expect(busy).toMatchObject({ code: 0, err: '' });
    expect(busy.out).toMatch(/^warn {2}server: writes: They could not be tried: another doctor has had /m);
  });

  test('the doctor leaves nothing but the fence of the server, and what ends by itself', async () => {
    await server.client.flushall();
    await Promise.all(Array.from({ length: 3 }, () => cliUntil({ LOCKS_REDIS: server.url }, ['doctor'], ({ code }) => code === 0)));
    const names = await server.client.keys('*');
    const lasting = [];
    for (const name of names) {
      const leftMs = await server.client.pttl(name);
      if (leftMs === -1) {
        lasting.push(name);
      }
      expect(leftMs).toBeLessThanOrEqual(10_000);
    }
    expect(lasting).toEqual(['lock:fence:{0}']);
    expect(names.filter((name) => name.startsWith('lock:lock:') || name.startsWith('lock:queue:'))).toEqual([]);
  });
});

describe('in PostgreSQL', () => {
  let server: PostgresServer;

  beforeAll(async () => {
    server = await PostgresServer.start();
    await new PostgresLockStore(server.pool()).ensureSchema();
  });
  afterAll(() => server.stop());

  test('the doctor fails where somebody has locked the table', async () => {
    const session = await server.pool({ max: 1 }).connect();
    await session.query('BEGIN; LOCK TABLE distributed_lock.lease IN EXCLUSIVE MODE');
    const refused = await cli({ LOCKS_POSTGRES: server.url }, ['doctor']);
    session.release(true);
    expect(refused).toMatchObject({ code: 1, err: '' });
    expect(refused.out.match(/^FAIL.*$/gm)).toEqual([
      expect.stringMatching(/^FAIL {2}server: writes: .*A session may have locked the tables/),
    ]);
  });

  test('the doctor fails where commits wait for a standby that is gone', async () => {
    await server.query("ALTER SYSTEM SET synchronous_standby_names = 'gone'");
    await server.query('SELECT pg_reload_conf()');
    await until(
      'the setting',
      async () => (await server.query('SHOW synchronous_standby_names'))[0]?.['synchronous_standby_names'] === 'gone',
    );
    const refused = await cli({ LOCKS_POSTGRES: server.url }, ['doctor']);
    await server.query('ALTER SYSTEM RESET synchronous_standby_names');
    await server.query('SELECT pg_reload_conf()');
    expect(refused).toMatchObject({ code: 1, err: '' });
    expect(refused.out).toMatch(/^FAIL {2}server: writes: .*standby/m);
  });

  test('the doctor leaves one row, however often it runs', async () => {
    for (let run = 0; run < 2; run++) {
      await cliUntil({ LOCKS_POSTGRES: server.url }, ['doctor'], ({ code }) => code === 0);
    }
    expect(await server.query('SELECT count(*)::int AS rows, count(owner)::int AS held FROM distributed_lock.lease')).toEqual([
      { rows: 1, held: 0 },
    ]);
  });
});
