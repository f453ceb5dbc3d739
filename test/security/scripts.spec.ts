import 'reflect-metadata';
import type { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { outsideLocks } from '../../lib/core/calls/call-tree';
import { writeTicket } from '../../lib/core/leases/ticket';
import type { LockStore } from '../../lib/core/seam/lock-store';
import type { LockOperations } from '../../lib/nest/lock.operations';
import { QuorumLockStore } from '../../lib/quorum/quorum-lock-store';
import * as quorumScripts from '../../lib/quorum/votes/scripts';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import * as scripts from '../../lib/redis/scripts/scripts';
import * as sharedScripts from '../../lib/redis/scripts/shared-scripts';
import { makeLocks } from '../support/make-locks';
import { newHold } from '../support/new-hold';
import { noWarning } from '../support/no-warning';
import { answered } from '../support/patient';
import { until } from '../support/until';
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
type Script = { readonly name: string; readonly source: string; readonly sha: string };

/** A prefix has no white space and no braces. */
const HOSTILE_PREFIX = `');redis.call('FLUSHALL')--`;

/** A server of which all scripts are seen that it is sent. */
class WatchedServer implements AsyncDisposable {
  readonly server: RedisServer;
  readonly evaluated: { command: string; body: string; keys: string }[] = [];
  readonly #monitor: Redis;

  private constructor(server: RedisServer, monitor: Redis) {
    this.server = server;
    this.#monitor = monitor;
    monitor.on('monitor', (_time: string, [name = '', body = '', keys = '']: string[]) => {
      const command = name.toLowerCase();
      if (command.startsWith('eval')) {
        this.evaluated.push({ command, body: body.replaceAll('\\n', '\n'), keys });
      }
    });
  }

  static async start(): Promise<WatchedServer> {
    const server = await RedisServer.start();
    await server.client.set('canary', 'alive');
    return new WatchedServer(server, await server.client.monitor());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#monitor.disconnect();
    await this.server.stop();
  }

  /** The sent commands that are none of these scripts. */
  unknown(all: readonly Script[]): string[] {
    const known = new Set(all.flatMap(({ source, sha }) => [`eval ${source}`, `evalsha ${sha}`]));
    return this.evaluated.map(({ command, body }) => `${command} ${body}`).filter((one) => !known.has(one));
  }

  /**
   * A script was seen, by its hash at least. The number of its keys never depends on their names; a batch has as many
   * keys as its commands.
   */
  expectSeen({ name, sha, source }: Script): void {
    const keys = new Set(this.evaluated.filter(({ body }) => body === sha || body === source).map((one) => one.keys));
    if (name === 'batch') {
      expect(keys.size).toBeGreaterThan(0);
    } else {
      expect([name, keys.size]).toEqual([name, 1]);
    }
  }
}

/** Takes every script through its paths with a text in every place that a caller fills. */
async function useEverything(
  text: string,
  server: RedisServer,
  makeStore: () => LockStore = () => new RedisLockStore(server.url),
): Promise<void> {
  const ttl = 6_000;
  const stores = [makeStore(), makeStore()] as const;
  await Promise.all(stores.map((store) => store.open?.({ prefix: HOSTILE_PREFIX, warn: (message) => noWarning(message) })));
  const [locks, others] = [makeLocks(stores[0]), makeLocks(stores[1])];
  const by = `by ${text}`;
  const inspect = (): ReturnType<LockOperations['inspect']> => answered(() => others.operations.inspect(text));
  for (const known of [false, true]) {
    if (!known) {
      await server.client.script('FLUSH');
    }
    await locks.withLock(text, { by, ttl }, async (lock) => {
      await others.withLock(text, { ticket: lock.makeTicket(), by }, () => undefined);
      const forged = writeTicket([{ store: 'default', key: text, secret: text, fence: lock.fence, storedFence: lock.fence }]);
      await expect(others.acquire(text, { ticket: forged })).rejects.toMatchObject({ code: 'LOCK_LOST' });
      await expect(others.acquire(text, { wait: 30, by })).rejects.toMatchObject({ reason: 'busy' });
      expect((await inspect())?.by).toContain(by);
      // It is renewed meanwhile.
      await sleep(ttl * 0.4);
    });
    await Promise.all([locks, locks, others].map((service) => service.withLock(text, { by }, () => sleep(5))));
    // The commands that are sent in one turn go as a batch.
    await Promise.all([1, 2, 3].map((at) => locks.withLock(`${text}${at}`, { by }, () => undefined)));
    const held = await locks.acquire(text, { by });
    // Where its reply is lost, it is answered with what its repetition finds.
    await outsideLocks(() => answered(() => others.operations.forceRelease(text, { fence: held.fence })));
    await until('that it is free', async () => (await inspect()) === null);
    await share(text, by, stores[0]);
  }
  await Promise.all([locks.shutdown(), others.shutdown()]);
}

/** Takes the scripts of holds that share their key through their paths, where the store has them. */
async function share(text: string, by: string, store: LockStore): Promise<void> {
  if (!store.shared) {
    return;
  }
  const [first, second] = [newHold(text, { by, shares: 'read' }), newHold(text, { by, shares: 'read' })];
  const { fence = 0 } = await store.acquire(first, { name: 'placeR' });
  await store.acquire(second);
  const joined = { ...first, id: randomUUID(), fence };
  expect(await store.tickets?.join(joined)).toBe(true);
  expect(await store.renew([{ ...second, fence }])).toEqual([true]);
  await store.acquire(newHold(text, { by }), { name: 'place' });
  await store.turns?.leave(text, 'place');
  for (const hold of [first, second, joined]) {
    expect(await store.release(hold)).toBe(true);
  }
}

const ALL = [...Object.values(scripts), ...Object.values(sharedScripts)];
const OF_QUORUM = Object.values(quorumScripts);

async function checkOneServer(text: string): Promise<void> {
  await using watched = await WatchedServer.start();
  await useEverything(text, watched.server);
  expect(watched.unknown(ALL)).toEqual([]);
  ALL.forEach((script) => watched.expectSeen(script));
  expect(watched.evaluated.some(({ command }) => command === 'eval')).toBe(true);
  expect(await watched.server.client.get('canary')).toBe('alive');
}

async function checkQuorum(): Promise<void> {
  await using watched = await WatchedServer.start();
  const others = await Promise.all([RedisServer.start(), RedisServer.start()]);
  const urls = [watched.server, ...others].map(({ url }) => url);
  try {
    for (const text of HOSTILE.slice(2, 5)) {
      await useEverything(text, watched.server, () => new QuorumLockStore(urls));
      // A fence that the others do not know, so that there is one to settle.
      await others[0]?.client.set(`${HOSTILE_PREFIX}:fence:{0}`, Date.now() * 1_000 + 10_000_000);
    }
  } finally {
    await Promise.all(others.map((other) => other.stop()));
  }
  expect(watched.unknown([...ALL, ...OF_QUORUM])).toEqual([]);
  OF_QUORUM.forEach((script) => watched.expectSeen(script));
  expect(await watched.server.client.get('canary')).toBe('alive');
}

async function checkSources(): Promise<void> {
  const before = ALL.map(({ sha }) => sha);
  await using watched = await WatchedServer.start();
  const { client } = watched.server;
  await useEverything(`key ${randomUUID()}`, watched.server);
  expect(ALL.map(({ sha }) => sha)).toEqual(before);
  const loaded = await client.script('EXISTS', ...before);
  expect(loaded).toEqual(before.map(() => 1));
  expect(await client.info('memory')).toMatch(new RegExp(`^number_of_cached_scripts:${before.length}\\r?$`, 'm'));
}

/** They run side by side, as they wait for renewals; each test tells how one went. */
const CHECKS: ReadonlyMap<string, () => Promise<void>> = new Map([
  ...HOSTILE.map((text) => [text, () => checkOneServer(text)] as const),
  ['quorum', checkQuorum],
  ['sources', checkSources],
]);
const ended = new Map<string, PromiseSettledResult<void>>();
beforeAll(async () => {
  const results = await Promise.allSettled([...CHECKS.values()].map((check) => check()));
  [...CHECKS.keys()].forEach((name, at) => ended.set(name, results[at] as PromiseSettledResult<void>));
}, 120_000);

function expectPassed(name: string): void {
  const end = ended.get(name);
  if (end?.status !== 'fulfilled') {
    throw end?.reason;
  }
}

test.each(HOSTILE)('what a caller calls things, such as %p, reaches a script as KEYS and ARGV only', (text) => expectPassed(text));

test('what a caller calls things reaches the scripts of a quorum in no other way', () => expectPassed('quorum'));

test('the sources of the scripts are the same in every process, whatever was locked', () => expectPassed('sources'));
