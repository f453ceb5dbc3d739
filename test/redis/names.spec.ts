import 'reflect-metadata';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { createClient as createClient6 } from 'redis-6';
import { LockKeyError, type LockError } from '../../lib/core/words/errors';
import type { LockService } from '../../lib/nest/lock.service';
import type { RedisSource } from '../../lib/redis/connection/redis-source';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { noWarning } from '../support/no-warning';
import { sourceOf } from '../support/redis-source';
import { until } from '../support/until';
import { makeLocks } from '../support/make-locks';
import { RedisServer } from '../support/redis-server';
import { newHold } from '../support/new-hold';

/** Keys that a sloppy name would take for one another, for a part of a name, or for something else's. */
const NAMES: readonly string[] = [
  ...['a', '{a}', '{a}:queue', 'a:queue', 'a}:queue', '{a', 'a}', '}a{', '{{a}}', '{}', '}{', '{', '}'],
  ...['%7Ba%7D', '%257Ba%257D', '{%7Ba%7D}', '%', '%25', '%%', '%0A', '\na', '\r\na', '\u0000', '%00', '\u007f', ' a', '  a', 'a '],
  ...[':', '::', 'a:b', 'a%3Ab', 'lock', 'lock:{a}', 'lock:lock:{a}', 'lock:queue:{a}', 'queue:{a}', '0', '{0}', 'fence:{0}'],
  ...['é', 'e\u0301', 'ключ 🔑', 'キー', '\u200b', '\ufeffa', '__proto__', 'constructor', 'turn a b', 'forced 1 a', '*', '?', '[a]'],
  ...['x'.repeat(1_024), `${'x'.repeat(1_023)}y`, '🔑'.repeat(256), '{'.repeat(1_024), '%'.repeat(1_024), '\na'.repeat(512)],
];

let server: RedisServer;
let stores: RedisLockStore[];
let locks: LockService;

beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());

beforeEach(async () => {
  await server.client.flushall();
  stores = [];
  locks = makeLocks(await openStore());
});
afterEach(() => Promise.all(stores.map((store) => store.close())));

async function openStore(prefix = 'lock'): Promise<RedisLockStore> {
  const store = new RedisLockStore(sourceOf(server.url));
  await store.open({ prefix, warn: (message) => noWarning(message) });
  await server.client.flushall();
  stores.push(store);
  return store;
}

/** The part of a key from which Redis Cluster computes its slot. */
function slotTextOf(name: string): string {
  const open = name.indexOf('{');
  const close = name.indexOf('}', open + 1);
  return open >= 0 && close > open + 1 ? name.slice(open + 1, close) : name;
}

test('no two keys share anything in Redis: each has a lock, a queue and a done mark of its own, in one slot', async () => {
  const store = stores[0] as RedisLockStore;
  const holds = NAMES.map((key) => newHold(key, { ttlMs: 60_000 }));
  for (const hold of holds) {
    expect(await store.acquire(hold)).toMatchObject({ fence: expect.any(Number) });
    await store.acquire(newHold(hold.key, { ttlMs: 60_000 }), { name: 'place' });
  }
  const taken = (await server.client.keys('*')).filter((name) => name !== 'lock:fence:{0}');
  expect(taken.filter((name) => name.startsWith('lock:lock:'))).toHaveLength(NAMES.length);
  expect(taken.filter((name) => name.startsWith('lock:queue:'))).toHaveLength(NAMES.length);
  expect(taken).toHaveLength(2 * NAMES.length);
  await Promise.all(holds.map((hold) => store.release(hold)));
  const left = await server.client.keys('lock:done:*');
  expect(left).toHaveLength(NAMES.length);
  const slots = new Map<string, number>();
  for (const name of [...taken, ...left]) {
    slots.set(slotTextOf(name), (slots.get(slotTextOf(name)) ?? 0) + 1);
  }
  // A lock, its queue and a done mark each.
  expect([...slots.values()]).toEqual(NAMES.map(() => 3));
});

test('each key excludes itself, and nothing else', async () => {
  const elsewhere = makeLocks(await openStore());
  const held = await Promise.all(NAMES.map((key) => locks.acquire(key, { wait: 0 })));
  expect(held.map((lock) => lock.keys)).toEqual(NAMES.map((key) => [key]));
  for (const [at, key] of NAMES.entries()) {
    expect(await elsewhere.tryAcquire(key)).toBeNull();
    await held[at]?.release();
    expect((await locks.operations.inspect(key)) ?? 'free').toBe('free');
    const again = await elsewhere.tryAcquire(key);
    expect(again?.isHeld()).toBe(true);
  }
});

test('each key has a queue of its own, and a waiter is notified of its turn with that very key', async () => {
  const store = stores[0] as RedisLockStore;
  const notified: string[][] = [];
  store.onTurn({ turn: (key, name) => notified.push([key, name]), recheck: () => undefined });
  const holds = NAMES.map((key) => newHold(key, { ttlMs: 60_000 }));
  await Promise.all(holds.map((hold) => store.acquire(hold)));
  await Promise.all(NAMES.map((key, at) => store.acquire(newHold(key, { ttlMs: 60_000 }), { name: `place${at}` })));
  for (const [at, hold] of holds.entries()) {
    await store.release(hold);
    await until('the message', () => notified.length > at);
  }
  expect(notified).toEqual(NAMES.map((key, at) => [key, `place${at}`]));
});

test('a holder is notified of a forced release with that very key', async () => {
  const held = await Promise.all(NAMES.map((key) => locks.acquire(key, { ttl: '10m' })));
  for (const [at, lock] of held.entries()) {
    expect(await locks.operations.forceRelease(NAMES[at] as string, { fence: lock.fence })).toBe(true);
    await until('the forced release', () => !lock.isHeld());
    expect(held.filter((other) => other.isHeld())).toHaveLength(NAMES.length - at - 1);
  }
});

test('prefixes that are also parts of names share nothing either', async () => {
  const prefixes = ['lock', 'lock:lock', 'lock:queue', 'lock:done', 'lock:fence', 'loc', 'lock:'];
  const services: LockService[] = [];
  for (const prefix of prefixes) {
    services.push(makeLocks(await openStore(prefix)));
  }
  for (const key of ['a', 'lock:{a}', '{a}', ':']) {
    const held = await Promise.all(services.map((service) => service.acquire(key, { wait: 0 })));
    expect(new Set(held.map((lock) => lock.isHeld()))).toEqual(new Set([true]));
    await Promise.all(held.map((lock) => lock.release()));
  }
});

test.each([
  ['an empty key', '', /the key is empty\. Name what is protected/],
  ['1,025 bytes', 'x'.repeat(1_025), /has 1025 bytes; at most 1024 are allowed\. Use an identifier or a hash/],
  ['1,025 bytes in fewer characters', `${'é'.repeat(512)}x`, /has 1025 bytes/],
  ['a megabyte', 'x'.repeat(1_048_576), /has 1048576 bytes/],
  ['half a character', 'a\ud83d', /holds half a surrogate pair/],
])('%s is refused before anything is sent, and no message grows with the key', async (_, key, message) => {
  const before = (await server.commandCounts()).get('evalsha') ?? 0;
  const calls: (() => Promise<unknown>)[] = [
    () => locks.acquire(key),
    () => locks.tryAcquire(key),
    () => locks.withLock(key, () => 1),
    () => locks.operations.inspect(key),
    () => locks.operations.forceRelease(key, { fence: 1 }),
  ];
  for (const call of calls) {
    const error: unknown = await Promise.resolve()
      .then(call)
      .catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(LockKeyError);
    expect((error as LockError).detail).toMatch(message);
    expect((error as LockError).detail.length).toBeLessThan(300);
  }
  expect((await server.commandCounts()).get('evalsha') ?? 0).toBe(before);
});

test('what is sent to all processes comes to those in the same database, with the same prefix of the client', async () => {
  const heard: string[] = [];
  const open = async (name: string, source: RedisSource): Promise<RedisLockStore> => {
    const store = new RedisLockStore(source);
    stores.push(store);
    store.messages.onMessage((text) => heard.push(`${name} ${text}`));
    await store.open({ prefix: 'lock', warn: (message) => noWarning(message) });
    return store;
  };
  const { url } = server;
  const places: Readonly<Record<string, readonly RedisSource[]>> = {
    first: [url, createClient({ url })],
    second: [`${url}/1`, createClient({ url, database: 1 })],
    prefixed: [new Redis(url, { keyPrefix: 'app:', lazyConnect: true }), createClient6({ url, keyPrefix: 'app:' })],
  };
  for (const [name, sources] of Object.entries(places)) {
    const opened = await Promise.all(sources.map((source) => open(name, source)));
    for (const store of opened) {
      await until('that it hears', async () => (await store.health()).hearsTurns === true);
    }
  }
  for (const store of stores.slice(1)) {
    heard.length = 0;
    const name = Object.keys(places)[Math.floor((stores.indexOf(store) - 1) / 2)] ?? '';
    await store.messages.send('hello');
    await until('that both hear it', () => heard.length >= 2);
    expect(heard).toEqual([`${name} hello`, `${name} hello`]);
  }
});
