import 'reflect-metadata';
import { Redis } from 'ioredis';
import { tracingChannel, type TracingChannelSubscribers } from 'node:diagnostics_channel';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { outsideLocks } from '../../lib/core/calls/call-tree';
import type { LockStore } from '../../lib/core/seam/lock-store';
import { QuorumLockStore } from '../../lib/quorum/quorum-lock-store';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { isOfSlowness } from '../support/no-warning';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';

/**
 * The channels on which ioredis publishes each command with its arguments, since version 5.11: tracers subscribe to
 * them.
 */
const CHANNELS = ['ioredis:command', 'ioredis:batch', 'ioredis:connect'] as const;
const PARTS = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;

let servers: RedisServer[];
let monitors: Redis[];
/** The data of a key's commands that can be seen in each of the places where others may look. */
let traced: string[];
let monitored: string[];
let published: string[];
let warned: string[];
let tickets: string[];
const trace = (message: unknown): number => traced.push(inspect(message, { depth: 6, maxArrayLength: null, maxStringLength: null }));
const subscribers = Object.fromEntries(PARTS.map((part) => [part, trace])) as unknown as TracingChannelSubscribers<object>;

beforeEach(async () => {
  [traced, monitored, published, warned, tickets, monitors] = [[], [], [], [], [], []];
  servers = await Promise.all([RedisServer.start(), RedisServer.start(), RedisServer.start()]);
  for (const { client, url } of servers) {
    await client.config('SET', 'slowlog-log-slower-than', '0');
    await client.config('SET', 'slowlog-max-len', '100000');
    const monitor = await client.monitor();
    monitor.on('monitor', (_time: string, args: string[]) => monitored.push(args.join(' ')));
    const subscriber = new Redis(url);
    subscriber.on('pmessage', (_pattern, channel: string, message: string) => published.push(channel, message));
    await subscriber.psubscribe('*');
    monitors.push(monitor, subscriber);
  }
  CHANNELS.forEach((name) => tracingChannel(name).subscribe(subscribers));
});
afterEach(async () => {
  CHANNELS.forEach((name) => tracingChannel(name).unsubscribe(subscribers));
  monitors.forEach((monitor) => monitor.disconnect());
  await Promise.all(servers.map((server) => server.stop()));
});

/** The secrets of a ticket, which is base64url of the JSON of `[[key, secret, fence], …]`. */
function secretsOf(ticket: string): string[] {
  const entries = JSON.parse(Buffer.from(ticket, 'base64url').toString()) as [string, string, number][];
  return entries.map(([, secret]) => secret);
}

/** All that a server has stored, and its slow log. */
async function storedAt({ client }: RedisServer): Promise<{ stored: string[]; slow: string[] }> {
  const stored: string[] = [];
  for (const key of await client.keys('*')) {
    const type = await client.type(key);
    const value =
      type === 'hash' ? await client.hgetall(key) : type === 'zset' ? await client.zrange(key, '0', '-1') : await client.get(key);
    stored.push(key, JSON.stringify(value));
  }
  const slow = (await client.slowlog('GET', 100_000)) as [number, number, number, string[]][];
  return { stored, slow: slow.map(([, , , args]) => args.join(' ')) };
}

/** Makes tickets, joins by them, and takes each command through its paths, for a key. */
async function useTickets(makeStore: () => LockStore, key: string): Promise<void> {
  const stores = [makeStore(), makeStore()] as const;
  await Promise.all(stores.map((store) => store.open?.({ prefix: 'lock', warn: (message) => void warned.push(message) })));
  const [locks, others] = [makeLocks(stores[0]), makeLocks(stores[1])];
  for (const loaded of [true, false]) {
    if (!loaded) {
      await Promise.all(servers.map(({ client }) => client.script('FLUSH')));
    }
    await locks.withLock([key, `${key} too`], { ttl: 3_000 }, async (lock) => {
      tickets.push(lock.makeTicket());
      await others.withLock(key, { ticket: lock.makeTicket() }, async (joined) => {
        tickets.push(joined.makeTicket());
        // Renewals come meanwhile.
        await sleep(1_100);
      });
      await expect(others.acquire(key, { wait: 30 })).rejects.toMatchObject({ reason: 'busy' });
    });
    await expect(others.acquire(key, { ticket: tickets.at(-1) as string })).rejects.toMatchObject({ code: 'LOCK_LOST' });
    await Promise.all([locks, locks, others].map((service) => service.withLock(key, (lock) => tickets.push(lock.makeTicket()))));
    const held = await locks.acquire(key);
    tickets.push(held.makeTicket());
    // Where its reply is lost, it is answered with what its repetition finds.
    await outsideLocks(() => others.operations.forceRelease(key, { fence: held.fence }));
    await until('the loss', () => !held.isHeld());
  }
  await Promise.all([locks.shutdown(), others.shutdown()]);
}

test.each([
  ['one server', () => new RedisLockStore(servers[0]?.url ?? '')],
  ['a quorum', () => new QuorumLockStore(servers.map(({ url }) => url))],
])(
  'no ticket and no secret in it is in a trace, on MONITOR, in the slow log or stored, on %s',
  async (_, makeStore) => {
    const key = 'orders 42';
    await useTickets(makeStore, key);
    const found = await Promise.all(servers.map(storedAt));
    const [stored, slow] = [found.flatMap((server) => server.stored), found.flatMap((server) => server.slow)];
    const places = { traced, monitored, published, warned, stored, slow };

    // Each of these places shows commands or data of the key: nothing is missing because nobody looked there.
    const seen = (place: readonly string[]): boolean => place.some((text) => text.includes(key));
    expect(seen(traced) && seen(monitored) && seen(stored) && seen(slow)).toBe(true);
    expect(published.some((text) => text.startsWith('forced '))).toBe(true);
    expect(warned.filter((warning) => !isOfSlowness(warning))).toEqual([]);

    const secrets = tickets.flatMap((ticket) => [ticket, ...secretsOf(ticket)]);
    expect(new Set(secrets).size).toBeGreaterThan(10);
    for (const [place, texts] of Object.entries(places)) {
      const all = texts.join('\n');
      expect([place, secrets.filter((secret) => all.includes(secret))]).toEqual([place, []]);
    }
  },
  60_000,
);
