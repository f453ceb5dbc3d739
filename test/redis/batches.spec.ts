import { stop } from 'esbuild';
import { AsyncLocalStorage } from 'node:async_hooks';
import { execFileSync } from 'node:child_process';
import type { LockError } from '../../lib/core/words/errors';
import type { AcquireReply, HoldRecord } from '../../lib/core/seam/lock-store';
import { Batches } from '../../lib/kit/batches';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { BATCH } from '../../lib/redis/scripts/scripts';
import { loadWith } from '../support/defective';
import { newHold } from '../support/new-hold';
import { noWarning } from '../support/no-warning';
import { openSwiftly } from '../support/open-swiftly';
import { RedisServer } from '../support/redis-server';
import { sourceOf } from '../support/redis-source';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';

const ENTRY = "export { RedisLockStore } from './redis/redis-lock-store.js';";

let server: RedisServer;
let proxy: TcpProxy;
let store: RedisLockStore;

beforeAll(async () => {
  server = await RedisServer.start();
  proxy = await TcpProxy.start(server.port);
});
afterAll(async () => {
  await proxy.stop();
  await server.stop();
});

beforeEach(async () => {
  await server.client.flushall();
  const opened = await openSwiftly(() => new RedisLockStore(sourceOf(`redis://127.0.0.1:${proxy.port}`)));
  store = opened.store;
  expect(opened.warnings).toEqual([]);
});
afterEach(async () => {
  proxy.latencyMs = 0;
  await store.close();
});

/**
 * On a machine that stalls, a server may take longer than the second that an operation has, and a test longer than a
 * short lease.
 */
const PATIENT = { ttlMs: 60_000, limitMs: 20_000 } as const;
const patientHold = (key: string): HoldRecord => newHold(key, PATIENT);
const holdsOf = (count: number): HoldRecord[] => Array.from({ length: count }, (_, at) => patientHold(`k${at}`));

/** How many scripts the server ran meanwhile. */
async function scriptsFor(run: () => Promise<unknown>): Promise<number> {
  const count = async (): Promise<number> => {
    const counts = await server.commandCounts();
    return (counts.get('evalsha') ?? 0) + (counts.get('eval') ?? 0);
  };
  const before = await count();
  await run();
  return (await count()) - before;
}

/** The reply, or the error that a call of the store rejected with. */
const outcomeOf = <T>(call: Promise<T>): Promise<T | LockError> => call.catch((error: LockError) => error);

/** The connection knows that it was slow, so that it is not taken for dead while the server stands still. */
async function beSlow(): Promise<void> {
  proxy.latencyMs = 500;
  await inspect('slow');
  proxy.latencyMs = 0;
}

/** Once more where a machine that stalls took longer than that may take. */
async function inspect(key: string): ReturnType<RedisLockStore['inspect']> {
  let seen: Awaited<ReturnType<RedisLockStore['inspect']>> | LockError = null;
  // Not at once: while the connection is made anew, each call fails before anything else can happen.
  await until(`what is stored of ${key}`, async () => !((seen = await outcomeOf(store.inspect(key))) instanceof Error));
  return seen;
}

describe('what one turn of the event loop asks of a server', () => {
  test('is one script for each 16, behind the first one', async () => {
    const holds = holdsOf(33);
    expect(await scriptsFor(() => Promise.all(holds.map((hold) => store.acquire(hold))))).toBe(3);
    expect(await scriptsFor(() => Promise.all(holds.map((hold) => store.release(hold))))).toBe(3);
  });

  test('reads the clock once, and asks for fences behind those that it reserved before', async () => {
    const before = await server.commandCounts();
    await Promise.all([outcomeOf(store.inspect('k')), ...holdsOf(8).map((hold) => store.acquire({ ...hold, fences: 3 }))]);
    const after = await server.commandCounts();
    // SET would move a counter that was ahead of what an attempt asks for.
    const counts = ['time', 'getset', 'set'].map((name) => (after.get(name) ?? 0) - (before.get(name) ?? 0));
    expect(counts).toEqual([1, 8, 0]);
  });

  test('is answered to each, in whatever order, kinds and outcomes come', async () => {
    const [held, busy, other, queued] = ['held', 'held', 'other', 'other'].map(patientHold) as [
      HoldRecord,
      HoldRecord,
      HoldRecord,
      HoldRecord,
    ];
    await store.acquire(held);
    const { fence = 0 } = await store.acquire(other);
    const [first, released, refused, free, unknown, exchanged] = await Promise.all([
      inspect('held'),
      store.release(patientHold('other')),
      store.acquire(busy),
      store.acquire(patientHold('free')),
      store.release(patientHold('free')),
      store.exchange({ ...other, fence }, queued, { name: 'place' }, true),
    ]);
    expect(first?.holds).toBe(1);
    expect([released, unknown, exchanged.released]).toEqual([false, false, true]);
    expect(refused.fence).toBeUndefined();
    expect(refused).toMatchObject({ holder: { by: 'tester' } });
    const exchange = await exchanged.reply;
    expect((free.fence as number) < (exchange.fence as number)).toBe(true);
    expect(await inspect('other')).toMatchObject({ fence: exchange.fence });
  });

  test('that cannot be in a batch stays behind what was asked for before it', async () => {
    await store.acquire(patientHold('k'));
    const first = outcomeOf(store.inspect('k'));
    // The place is joined before it is left.
    const others = [store.acquire(patientHold('k'), { name: 'place' }), store.acquire(patientHold('other'))];
    await Promise.all([first, ...others, outcomeOf(store.leave('k', 'place'))]);
    expect(await inspect('k')).toMatchObject({ waiters: [] });
  });

  test('goes at once where it is alone, also in a turn that goes on', async () => {
    const hold = patientHold('k');
    const acquired = store.acquire(hold);
    const inThisTurn = execFileSync('redis-cli', ['-p', String(server.port), 'EXISTS', 'lock:lock:{k}'], { encoding: 'utf8' });
    // The proxy is of this process: it passes on what the socket has, once this turn is over.
    expect(inThisTurn.trim()).toBe('0');
    expect((await acquired).fence).toBeGreaterThan(0);
    // node-redis writes what it was given after the turn.
    const direct = new RedisLockStore(server.url);
    await direct.open({ prefix: 'lock', warn: (message) => noWarning(message) });
    const alone = direct.acquire(patientHold('alone'));
    const exists = execFileSync('redis-cli', ['-p', String(server.port), 'EXISTS', 'lock:lock:{alone}'], { encoding: 'utf8' });
    expect(exists.trim()).toBe('1');
    await alone;
    await direct.close();
  });
});

describe('one bad request of a batch', () => {
  test('fails alone, with an error that names its key', async () => {
    await server.client.set('lock:lock:{k3}', "another application's");
    await Promise.all(holdsOf(2).map((hold) => store.release(hold)));
    let outcomes: readonly (AcquireReply | LockError)[] = [];
    const scripts = await scriptsFor(async () => {
      outcomes = await Promise.all(holdsOf(8).map((hold) => outcomeOf(store.acquire(hold))));
      await store.acquire(patientHold('after'));
    });
    // The others were answered, so the batch is not repeated.
    expect(scripts).toBe(3);
    const errors = outcomes.filter((outcome) => outcome instanceof Error);
    expect(errors).toHaveLength(1);
    expect(outcomes[3]).toMatchObject({ code: 'LOCK_CONFIGURATION', key: 'k3' });
    expect((errors[0] as LockError).detail).toMatch(/Lock "k3": Redis refused a command: WRONGTYPE .* Choose another prefix\./);
    expect(new Set(outcomes.map((outcome) => 'fence' in outcome && outcome.fence)).size).toBe(8);
  });

  test('that an access list refuses fails alone, in a batch of renewals too', async () => {
    const holds = await Promise.all(holdsOf(8).map(async (hold) => ({ ...hold, fence: Number((await store.acquire(hold)).fence) })));
    await server.client.acl('SETUSER', 'default', 'resetkeys', '~lock:*{k[^3]}', '~lock:fence:*');
    try {
      expect(await store.renew(holds)).toEqual(holds.map((_, at) => (at === 3 ? undefined : true)));
      await expect(store.renew(holds.slice(3, 4))).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', key: 'k3' });
      const released = await Promise.all([outcomeOf(store.inspect('k0')), ...holds.map((hold) => outcomeOf(store.release(hold)))]);
      expect(released.slice(1)).toEqual(
        holds.map((_, at) => (at === 3 ? expect.objectContaining({ code: 'LOCK_CONFIGURATION', key: 'k3' }) : true)),
      );
    } finally {
      await server.client.acl('SETUSER', 'default', 'allkeys');
    }
  });

  test('that has no time left is given up alone', async () => {
    const holds = holdsOf(6).map((hold, at) => ({ ...hold, limitMs: at === 4 ? 60 : 5_000 }));
    await beSlow();
    server.pause();
    const first = outcomeOf(store.inspect('k'));
    const calls = holds.map((hold) => outcomeOf(store.acquire(hold)));
    expect(await calls[4]).toMatchObject({ code: 'LOCK_STORE', unknown: true, key: 'k4' });
    server.resume();
    await first;
    const outcomes = await Promise.all(calls);
    expect(outcomes.filter((outcome) => outcome instanceof Error)).toHaveLength(1);
  });
});

test('a batch that the server does not know is sent once more, with its source, and each request counts once', async () => {
  const holds = holdsOf(10);
  await Promise.all(holds.map((hold) => store.acquire(hold)));
  await server.client.script('FLUSH');
  expect(await Promise.all(holds.map((hold) => store.release(hold)))).toEqual(holds.map(() => true));
  expect(await server.client.script('EXISTS', BATCH.sha)).toEqual([1]);
});

describe('a batch that the server does not know', () => {
  /** Two callers have given up when it is known, and the three behind them wait on. */
  async function giveUpInFront(): Promise<void> {
    await beSlow();
    await server.client.script('FLUSH');
    server.pause();
    const first = outcomeOf(store.inspect('k'));
    const holds = holdsOf(5).map((hold, at) => ({ ...hold, limitMs: at < 2 ? 60 : 5_000 }));
    const calls = holds.map((hold) => outcomeOf(store.acquire(hold)));
    const givenUp = await Promise.all(calls.slice(0, 2));
    expect(givenUp).toEqual([0, 1].map((at) => expect.objectContaining({ unknown: true, key: `k${at}` })));
    server.resume();
    await first;
    const outcomes = await Promise.all(calls);
    const stored = await Promise.all(holds.map(({ key }) => inspect(key)));
    expect(stored.slice(0, 2)).toEqual([null, null]);
    expect(outcomes.slice(2)).toEqual(stored.slice(2).map((lock) => ({ fence: lock?.fence ?? 0 })));
  }

  test('is not repeated for callers that have given up, and gives each of the others its own reply', giveUpInFront);

  test('is seen to give replies by their position, where it does', async () => {
    const defective = await loadWith<{ RedisLockStore: typeof RedisLockStore }>(ENTRY, [
      ['lib/redis/connection/redis-connection.ts', 'replies[waiting.indexOf(request)]', 'replies[requests.indexOf(request)]'],
    ]);
    await store.close();
    store = new defective.RedisLockStore(`redis://127.0.0.1:${proxy.port}`);
    await store.open({ prefix: 'lock', warn: () => undefined });
    await expect(giveUpInFront()).rejects.toThrow(/"fence"/);
    await stop();
  });
});

test('what waits to be sent when the store is closed is sent', async () => {
  const holds = holdsOf(4);
  await Promise.all(holds.map((hold) => store.acquire(hold)));
  const released = holds.map((hold) => outcomeOf(store.release(hold)));
  await store.close();
  await Promise.all(released);
  await until('all are free', async () => (await server.client.keys('lock:lock:*')).length === 0);
});

test('a reply that is nil does not move the others', async () => {
  // Something else wrote the mark of a release.
  const [first, second, third] = holdsOf(3) as [HoldRecord, HoldRecord, HoldRecord];
  await server.client.set(`lock:done:${first.id}:{k0}`, 'no number');
  const replies = await Promise.all([outcomeOf(store.inspect('k')), store.release(first), store.acquire(second), store.acquire(third)]);
  const stored = await Promise.all(['k1', 'k2'].map((key) => inspect(key)));
  expect(replies.slice(1)).toEqual([false, ...stored.map((lock) => ({ fence: lock?.fence }))]);
});

test('a batch that is not answered leaves each outcome unknown, and each may be repeated on its own', async () => {
  const holds = holdsOf(5).map((hold) => ({ ...hold, limitMs: 300 }));
  await store.acquire(patientHold('before'));
  proxy.mode = 'dropReplies';
  const outcomes = await Promise.all(holds.map((hold) => outcomeOf(store.acquire(hold))));
  expect(outcomes).toEqual(holds.map(({ key }) => expect.objectContaining({ code: 'LOCK_STORE', unknown: true, key })));
  proxy.mode = 'pass';
  await server.client.flushall();
  const other = new RedisLockStore(sourceOf(server.url));
  await other.open({ prefix: 'lock', warn: (message) => noWarning(message) });
  const acquireAll = (): Promise<AcquireReply[]> => Promise.all(holds.map((hold) => other.acquire({ ...hold, ...PATIENT })));
  const again = await acquireAll();
  expect(await acquireAll()).toEqual(again);
  await other.close();
});

test('a batch is sent in the context of no caller', async () => {
  const caller = new AsyncLocalStorage<string>();
  const contexts: unknown[] = [];
  const batches = new Batches<string>(async (requests) => {
    contexts.push([caller.getStore(), ...requests]);
    return requests.map(() => 'reply');
  });
  const ask = (name: string): Promise<unknown> => caller.run(name, () => batches.ask(name).then((reply) => [reply, caller.getStore()]));
  expect(await Promise.all(['one', 'two'].map((name) => ask(name)))).toEqual([
    ['reply', 'one'],
    ['reply', 'two'],
  ]);
  const many = Array.from({ length: 17 }, (_, at) => `caller ${at}`);
  const flushed = Promise.all(many.map((name) => ask(name)));
  caller.run('another', () => batches.flush());
  await flushed;
  expect(contexts).toEqual([
    [undefined, 'one', 'two'],
    [undefined, ...many.slice(0, 16)],
    [undefined, ...many.slice(16)],
  ]);
});
