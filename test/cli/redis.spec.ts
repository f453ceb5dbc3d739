import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { cli, cliUntil } from '../support/cli';
import { makeLocks } from '../support/make-locks';
import { newHold } from '../support/new-hold';
import { freePort, RedisServer } from '../support/redis-server';
import { until } from '../support/until';
import { describeCommands } from './commands-suite';

const PASSWORD = 'not-to-be-printed';

let server: RedisServer;
let store: RedisLockStore;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  server = await RedisServer.start();
  await server.client.call('ACL', 'SETUSER', 'locker', 'on', `>${PASSWORD}`, 'allkeys', 'allchannels', 'allcommands');
  env = { LOCKS_REDIS: `redis://locker:${PASSWORD}@127.0.0.1:${server.port}` };
  store = new RedisLockStore(server.url);
  await store.open({ prefix: 'lock', warn: () => undefined });
  // One that opened without an answer has no connection yet, and nothing here repeats what it refuses.
  await until('that the store answers', () =>
    store.health().then(
      () => true,
      () => false,
    ),
  );
});
afterAll(async () => {
  await store.close();
  await server.stop();
});

const otherStore = async () => {
  const other = new RedisLockStore(server.url);
  await other.open({ prefix: 'lock', warn: () => undefined });
  return other;
};

describeCommands(() => ({ store, env, otherStore }));

test('inspect shows the queue in order', async () => {
  await store.acquire(newHold('queued', { ttlMs: 60_000 }));
  for (const name of ['first', 'second']) {
    await store.acquire(newHold('queued', { ttlMs: 60_000 }), { name });
  }
  const waiters = (await store.inspect('queued'))?.waiters ?? [];
  expect(waiters).toHaveLength(2);
  const { out } = await cli(env, ['inspect', 'queued']);
  expect(out).toContain(`Queued      2 processes, in order:\n  1. ${waiters[0]}\n  2. ${waiters[1]}\n`);
});

test('readers and permits show how many share a key, and that a release by force takes all of them out', async () => {
  const share = async (key: string, shares: 'read' | number) =>
    (await store.acquire(newHold(key, { shares, ttlMs: 60_000 }))).fence as number;
  for (const key of ['report', 'report', 'report']) {
    await share(key, 'read');
  }
  const fences = [await share('erp', 5), await share('erp', 5), await share('erp', 5), await share('erp', 4)];
  const [list, json, readers, permits] = await Promise.all([
    cli(env, ['list']),
    cli(env, ['list', 'erp', '--json']),
    cli(env, ['inspect', 'report']),
    cli(env, ['inspect', 'erp']),
  ]);
  expect(list.out).toMatch(/^report +tester +read by 3 /m);
  expect(list.out).toMatch(/^erp +tester +4 of 4 permits /m);
  expect(list.out).toMatch(/^held all the time +tester +write /m);
  expect(JSON.parse(json.out)).toMatchObject({ key: 'erp', holds: 4, shares: 4 });
  expect(readers.out).toMatch(/^Held by +tester, and 2 others$/m);
  expect(readers.out).toMatch(/^Holds +read by 3$/m);
  expect(permits.out).toMatch(/^Holds +4 of 4 permits$/m);
  const released = await cli(env, ['release', 'erp', '--fence', String(fences[0]), '--yes']);
  expect(released.out).toBe('"erp" was released.\n');
  expect(released.err).toContain('and by 3 more (4 of 4 permits)');
  expect(released.err).toContain('All are taken out.');
  expect(await store.inspect('erp')).toBeNull();
});

test('calls that share a lock are one row of top', async () => {
  const other = await otherStore();
  const locks = makeLocks(other, { ttl: 60_000 });
  try {
    await Promise.all([1, 2, 3].map(() => locks.acquirePermit('shared:erp', 5, { by: 'Erp.sync' })));
    const { out } = await cliUntil(env, ['top'], (ran) => ran.out.includes('shared:erp'));
    expect(out.match(/^shared:erp +Erp\.sync .* 3 of 5 permits .*$/gm)).toHaveLength(1);
  } finally {
    await locks.shutdown();
    await other.close();
  }
});

test('a lock that changes hands while it is listed has one row', async () => {
  const others = await Promise.all([otherStore(), otherStore()]);
  const services = others.map((other) => makeLocks(other, { wait: 60_000 }));
  const keys = ['hot:1', 'hot:2', 'hot:3', 'hot:4'];
  const over = new AbortController();
  const busy = services.flatMap((locks) =>
    keys.map(async (key) => {
      while (!over.signal.aborted) {
        await locks.withLock(key, () => sleep(20));
      }
    }),
  );
  try {
    const { out } = await cliUntil(env, ['list', 'hot:', '--json'], (ran) => ran.out.includes('"answers":true'));
    const listed = out
      .trimEnd()
      .split('\n')
      .map((row) => (JSON.parse(row) as { key: string }).key);
    expect(listed.toSorted()).toEqual([...new Set(listed)].toSorted());
  } finally {
    over.abort();
    await Promise.allSettled(busy);
    await Promise.all(services.map((locks) => locks.shutdown()));
    await Promise.all(others.map((other) => other.close()));
  }
});

test('the doctor warns of eviction, and names rights that are missing', async () => {
  await server.client.config('SET', 'maxmemory-policy', 'allkeys-lru');
  const evicting = await cli(env, ['doctor']);
  await server.client.config('SET', 'maxmemory-policy', 'noeviction');
  expect(evicting).toMatchObject({ code: 0, err: '' });
  expect(evicting.out).toMatch(/^warn {2}server: eviction: .*Set it to noeviction/m);

  await server.client.call('ACL', 'SETUSER', 'poor', 'on', '>poor', 'allkeys', 'allchannels', 'allcommands', '-zadd', '-evalsha');
  const poor = await cli({ LOCKS_REDIS: `redis://poor:poor@127.0.0.1:${server.port}` }, ['doctor']);
  expect(poor.code).toBe(1);
  expect(poor.out).toMatch(/^FAIL {2}server: rights: The user lacks \+evalsha, \+zadd\. Grant/m);
});

test('the doctor fails where memory is full, and warns before that', async () => {
  const withMost = async (mostOf: (used: number) => number): Promise<{ code: number; out: string }> => {
    const used = Number(/^used_memory:(\d+)/m.exec(await server.client.info('memory'))?.[1]);
    await server.client.config('SET', 'maxmemory', mostOf(used));
    return cli(env, ['doctor']);
  };
  const roomy = await withMost((used) => used * 100);
  let nearly = roomy;
  // The memory that other connections use changes meanwhile, and others may be late.
  await until('a server that is nearly full', async () => {
    nearly = await withMost((used) => Math.round(used * 1.05));
    return nearly.code === 0 && nearly.out.includes('of maxmemory is in use');
  });
  const full = await withMost(() => 1);
  await server.client.config('SET', 'maxmemory', 0);
  expect(roomy.out).toMatch(/^ok {4}server: memory: \d % of maxmemory is in use\.$/m);
  expect(nearly.code).toBe(0);
  expect(nearly.out).toMatch(/^warn {2}server: memory: 9\d % of maxmemory is in use\. .*raise maxmemory/m);
  expect(full.code).toBe(1);
  expect(full.out).toMatch(/^FAIL {2}server: memory: It is full/m);
  expect(full.out).toMatch(/^FAIL {2}store: Its memory is full/m);
  expect((await cli(env, ['doctor'])).out).toMatch(/^ok {4}server: memory: maxmemory is not set\.$/m);
});

test('the doctor names a replica, a node of a Cluster and a Sentinel', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lock-doctor-'));
  const [replica, node] = await Promise.all([
    RedisServer.startReplica(server.port),
    RedisServer.start('--cluster-enabled', 'yes', '--dir', folder),
  ]);
  const file = join(folder, 'sentinel.conf');
  writeFileSync(file, '');
  const port = await freePort();
  const sentinel = spawn('redis-server', [file, '--sentinel', '--port', String(port)], { stdio: 'ignore' });
  const doctor = (at: number) => cli({ LOCKS_REDIS: `redis://127.0.0.1:${at}` }, ['doctor']);
  await until('the sentinel answers', async () => !(await doctor(port)).out.includes('did not answer'));
  const [ofReplica, ofNode, ofSentinel] = await Promise.all([replica.port, node.port, port].map(doctor));
  expect(ofReplica?.out).toMatch(/^FAIL {2}server: replicas: The server is a replica/m);
  expect(ofReplica?.out).toMatch(/^FAIL {2}store: It takes no writes/m);
  expect(ofNode?.out).toMatch(/^FAIL {2}server: mode: The server is a node of a Cluster.* to --redis-cluster/m);
  expect(ofSentinel?.out).toMatch(/^FAIL {2}server: mode: The server is a Sentinel.* Pass its URL to --redis-sentinel/m);
  sentinel.kill('SIGKILL');
  await once(sentinel, 'exit');
  await Promise.all([replica.stop(), node.stop()]);
  rmSync(folder, { recursive: true });
});

test('the doctor says that a user may not ask for its rights', async () => {
  await server.client.call('ACL', 'SETUSER', 'small', 'on', '>small', 'allkeys', 'allchannels', 'allcommands', '-acl');
  const { code, out } = await cli({ LOCKS_REDIS: `redis://small:small@127.0.0.1:${server.port}` }, ['doctor']);
  expect(code).toBe(0);
  expect(out).toMatch(/^warn {2}server: rights: They cannot be seen/m);
});

test('a server that is away, or refuses the password, ends with 3 and one line without the password', async () => {
  const away = await cli({ LOCKS_REDIS: `redis://:${PASSWORD}@127.0.0.1:1` }, ['list']);
  expect(away).toMatchObject({ code: 3, out: '' });
  expect(away.err).toMatch(/^Redis did not answer: .*Make sure .*\n$/);
  const refused = await cli({ LOCKS_REDIS: `redis://locker:wrong-${PASSWORD}@127.0.0.1:${server.port}` }, ['list']);
  expect(refused).toMatchObject({ code: 3, out: '' });
  expect(refused.err).toMatch(/^Redis refused .*Correct the user name and password.*\n$/);
  const doctor = await cli({ LOCKS_REDIS: `redis://:${PASSWORD}@127.0.0.1:1` }, ['doctor']);
  expect(doctor).toMatchObject({ code: 1, err: '' });
  expect(doctor.out).toMatch(/^FAIL {2}server: Redis did not answer/);
  expect(away.err + refused.err + doctor.out).not.toContain(PASSWORD);
});
