import 'reflect-metadata';
import type { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { outsideLocks } from '../../lib/core/call-tree';
import { writeTicket } from '../../lib/core/ticket';
import type { LockStore } from '../../lib/core/lock-store';
import { QuorumLockStore } from '../../lib/stores/quorum/quorum-lock-store';
import * as quorumScripts from '../../lib/stores/quorum/scripts';
import { RedisLockStore } from '../../lib/stores/redis/redis-lock-store';
import * as scripts from '../../lib/stores/redis/scripts';
import { makeLocks } from '../support/make-locks';
import { RedisServer } from '../support/redis-server';

const HOSTILE = [
  `') redis.call('FLUSHALL') --`,
  `]] redis.call('FLUSHALL') --`,
  '"\r\nFLUSHALL\r\n',
  '*3\r\n$3\r\nSET\r\n$6\r\ncanary\r\n$4\r\ndead\r\n',
  '\0\x01\x7f\\"\'`',
  '${process.exit(1)} %s%d KEYS[1] ARGV[1]',
  '../{*}[a-z]?',
] as const;
/** A prefix has no white space and no braces. */
const HOSTILE_PREFIX = `');redis.call('FLUSHALL')--`;

let server: RedisServer;
let monitor: Redis;
let evaluated: { command: string; body: string; keys: string }[];

beforeEach(async () => {
  evaluated = [];
  server = await RedisServer.start();
  await server.client.set('canary', 'alive');
  monitor = await server.client.monitor();
  monitor.on('monitor', (_time: string, [name = '', body = '', keys = '']: string[]) => {
    const command = name.toLowerCase();
    if (command.startsWith('eval')) {
      evaluated.push({ command, body: body.replaceAll('\\n', '\n'), keys });
    }
  });
});
afterEach(async () => {
  monitor.disconnect();
  await server.stop();
});

/** Takes every script through its paths with a text in every place that a caller fills. */
async function useEverything(text: string, makeStore: () => LockStore = () => new RedisLockStore(server.url)): Promise<void> {
  const ttl = 1_000;
  const stores = [makeStore(), makeStore()] as const;
  await Promise.all(stores.map((store) => store.open?.({ prefix: HOSTILE_PREFIX, warn: (message) => expect(message).toBe('') })));
  const [locks, others] = [makeLocks(stores[0]), makeLocks(stores[1])];
  const by = `by ${text}`;
  for (const known of [false, true]) {
    if (!known) {
      await server.client.script('FLUSH');
    }
    await locks.withLock(text, { by, ttl }, async (lock) => {
      await others.withLock(text, { ticket: lock.ticket, by }, () => undefined);
      const forged = writeTicket([{ store: 'default', key: text, secret: text, fence: lock.fence, storedFence: lock.fence }]);
      await expect(others.acquire(text, { ticket: forged })).rejects.toMatchObject({ code: 'LOCK_LOST' });
      await expect(others.acquire(text, { wait: 30, by })).rejects.toMatchObject({ reason: 'busy' });
      expect((await others.inspect(text))?.by).toContain(by);
      // It is renewed meanwhile.
      await sleep(ttl * 0.75);
    });
    await Promise.all([locks, locks, others].map((service) => service.withLock(text, { by }, () => sleep(5))));
    // What is sent in one turn goes as a batch.
    await Promise.all([1, 2, 3].map((at) => locks.withLock(`${text}${at}`, { by }, () => undefined)));
    const held = await locks.acquire(text, { by });
    expect(await outsideLocks(() => others.forceRelease(text, { fence: held.fence }))).toBe(true);
  }
  await Promise.all([locks.shutdown(), others.shutdown()]);
}

/** A script was seen, by its hash at least. The number of its keys never depends on what they are called; that of a batch is what its commands have. */
function expectSeen(name: string, sha: string, source: string): void {
  const keys = new Set(evaluated.filter(({ body }) => body === sha || body === source).map((one) => one.keys));
  if (name === 'batch') {
    expect(keys.size).toBeGreaterThan(0);
  } else {
    expect([name, keys.size]).toEqual([name, 1]);
  }
}

test.each(HOSTILE)('what a caller calls things, such as %p, reaches a script as KEYS and ARGV only', async (text) => {
  await useEverything(text);
  const known = new Set(Object.values(scripts).flatMap((script) => [`eval ${script.source}`, `evalsha ${script.sha}`]));
  const sent = new Set(evaluated.map(({ command, body }) => `${command} ${body}`));
  expect([...sent].filter((one) => !known.has(one))).toEqual([]);
  for (const { name, sha, source } of Object.values(scripts)) {
    expectSeen(name, sha, source);
  }
  expect(evaluated.some(({ command }) => command === 'eval')).toBe(true);
  expect(await server.client.get('canary')).toBe('alive');
});

test('what a caller calls things reaches the scripts of a quorum in no other way', async () => {
  const others = await Promise.all([RedisServer.start(), RedisServer.start()]);
  const urls = [server, ...others].map(({ url }) => url);
  try {
    for (const text of HOSTILE.slice(2, 5)) {
      await useEverything(text, () => new QuorumLockStore(urls));
      // A fence that the others do not know, so that there is one to settle.
      await others[0]?.client.set(`${HOSTILE_PREFIX}:fence:{0}`, Date.now() * 1_000 + 10_000_000);
    }
  } finally {
    await Promise.all(others.map((other) => other.stop()));
  }
  const all = [...Object.values(scripts), ...Object.values(quorumScripts)];
  const known = new Set(all.flatMap(({ source, sha }) => [`eval ${source}`, `evalsha ${sha}`]));
  expect(evaluated.map(({ command, body }) => `${command} ${body}`).filter((one) => !known.has(one))).toEqual([]);
  for (const { name, sha, source } of Object.values(quorumScripts)) {
    expectSeen(name, sha, source);
  }
  expect(await server.client.get('canary')).toBe('alive');
}, 60_000);

test('the sources of the scripts are the same in every process, whatever was locked', async () => {
  const before = Object.values(scripts).map(({ sha }) => sha);
  await useEverything(`key ${randomUUID()}`);
  expect(Object.values(scripts).map(({ sha }) => sha)).toEqual(before);
  const loaded = await server.client.script('EXISTS', ...before);
  expect(loaded).toEqual(before.map(() => 1));
  expect(await server.client.info('memory')).toMatch(new RegExp(`^number_of_cached_scripts:${before.length}\\r?$`, 'm'));
});
