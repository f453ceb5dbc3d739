import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockService } from '../../lib/nest/lock.service';
import { MemoryLockStore } from '../../lib/memory/memory-lock-store';
import { MessageParts, partsOf } from '../../lib/postgres/listening/message-parts';
import { makeLocks } from '../support/make-locks';
import { until } from '../support/until';

let store: MemoryLockStore;
let locks: LockService;

beforeEach(() => {
  store = new MemoryLockStore();
  locks = makeLocks(store, { deadlocksAfterMs: 100, wait: 30_000 });
});

/** A message of each kind, with whatever a stranger may put into it. */
function hostile(): unknown[] {
  const values: unknown[] = [null, undefined, -1, 1e308, '', 'x'.repeat(3_000), [], {}, [[]], { toString: 1 }, '__proto__', true];
  const fields = [
    'id',
    'from',
    'to',
    'recent',
    'health',
    'process',
    'parts',
    'held',
    'waiting',
    'ended',
    'incidents',
    'incidentsMs',
    'leftOut',
    'lap',
  ];
  const more = ['origin', 'key', 'fence', 'path', 'cycle'];
  const whole = { id: 'i', from: 'f', to: 't', recent: true, health: true, lap: 1, origin: 'o', key: 'k', fence: 1, path: [], cycle: [] };
  return ['roll', 'answer', 'probe', 'other'].flatMap((kind) =>
    [...fields, ...more].flatMap((field) => values.map((value) => ({ kind, ...whole, [field]: value }))),
  );
}

test('messages of strangers change no lock', async () => {
  const lock = await locks.acquire('k');
  const waits = locks.withLock('k', () => 'done');
  for (const message of [...hostile(), 1, 'text', null, []]) {
    await store.send(typeof message === 'string' ? message : JSON.stringify(message));
  }
  await store.send('{'.repeat(10_000));
  await store.send('x'.repeat(1_000_000));
  await sleep(50);
  expect(lock.isHeld()).toBe(true);
  expect(await locks.operations.inspect('k')).toMatchObject({ holds: 1, waitingHere: 1 });
  await lock.release();
  expect(await waits).toBe('done');
});

test('a probe for a lock that is held, and a call that waits in it, makes nobody give way without its wait', async () => {
  await locks.withLock('outer', async (lock) => {
    const other = await locks.acquire('inner', { reentry: 'never' });
    const waits = locks.withLock('inner', { reentry: 'never' }, () => 'done');
    const step = {
      process: 'p',
      site: 'x',
      wait: randomUUID(),
      waitsFor: 'inner',
      waitedMs: 1,
      holds: 'outer',
      fence: lock.fence,
      heldMs: 1,
    };
    for (const lap of [1, 2, 3, 4, -1, 0.5]) {
      await store.send(
        JSON.stringify({
          kind: 'probe',
          id: randomUUID(),
          lap,
          origin: randomUUID(),
          key: 'outer',
          fence: lock.fence,
          path: [],
          cycle: [step],
        }),
      );
    }
    await sleep(50);
    await other.release();
    expect(await waits).toBe('done');
  });
});

describe('a cycle that is none, told by a stranger who reads all messages', () => {
  test.each([
    'that nobody waits for what the call holds',
    'that nobody waits for what the call holds, and that its guest has left',
    'that the next call holds nothing',
  ])('ends no wait where the store says %s', async (why) => {
    const others = makeLocks(store, { wait: 30_000 });
    const inner = await others.acquire('inner');
    const probes: { origin: string; fence: number }[] = [];
    store.onMessage((text) => {
      const message = JSON.parse(text) as { kind: string; lap: number; origin: string; fence: number };
      probes.push(...(message.kind === 'probe' && message.lap === 1 ? [message] : []));
    });
    const isWanted = why.includes('next call');
    let waiting: Promise<unknown> | undefined;
    await locks.withLock('outer', async (lock) => {
      const { fence } = lock;
      if (why.includes('guest')) {
        await others.withLock('outer', { ticket: lock.makeTicket() }, () => undefined);
      }
      waiting = isWanted ? others.withLock('outer', () => 'waited') : undefined;
      const waits = locks.withLock('inner', { wait: '1m' }, () => 'done');
      await until('a probe', () => probes.length > 0);
      const [{ origin, fence: holders }] = probes as [{ origin: string; fence: number }];
      const call = { process: 'p', site: 'x', waitedMs: 1, heldMs: 1 };
      const own = { ...call, wait: origin, waitsFor: 'inner', holds: 'outer', fence };
      const next = { ...call, wait: randomUUID(), waitsFor: 'outer', holds: 'inner', fence: isWanted ? 1 : holders };
      const forged = { kind: 'probe', origin, key: 'outer', fence, path: [], cycle: [own, next] };
      await store.send(JSON.stringify({ ...forged, id: randomUUID(), lap: 3 }));
      await store.send(JSON.stringify({ ...forged, id: randomUUID(), lap: 2, path: [next], cycle: [next, own] }));
      // Until it has looked anew, what it was told is judged.
      const told = probes.length;
      await Promise.race([waits, until('more probes', () => probes.length > told + 1)]);
      await inner.release();
      expect(await waits).toBe('done');
    });
    expect(await waiting).toBe(isWanted ? 'waited' : undefined);
  });
});

test('a stranger who asks all the time is answered ten times a second at most', async () => {
  let answers = 0;
  store.onMessage((text) => {
    answers += text.includes('"kind":"answer"') ? 1 : 0;
  });
  await locks.acquire('k');
  const startedAt = performance.now();
  for (let asked = 0; asked < 1_000; asked++) {
    await store.send(JSON.stringify({ kind: 'roll', id: randomUUID(), from: 'me', to: store.process, recent: true, health: false }));
  }
  await until('answers came', () => answers > 0);
  await sleep(50);
  expect(answers).toBeLessThanOrEqual(10 * Math.ceil((performance.now() - startedAt + 1) / 1_000));
});

test('answers that nobody asked for, and names that come only once, are not kept', async () => {
  const answer = { kind: 'answer', id: randomUUID(), parts: 1, leftOut: 0, held: [], waiting: [], ended: [], incidents: [] };
  const process = { host: 'h', pid: 1, version: '0', upMs: 1, held: 0, waiting: 0 };
  for (let at = 0; at < 20_000; at++) {
    await store.send(JSON.stringify({ ...answer, process: { ...process, id: `p${at}#1` } }));
  }
  expect((await locks.operations.survey({})).silent).toEqual([]);
});

test('parts of messages of PostgreSQL that never become whole are forgotten', () => {
  const parts = new MessageParts();
  const text = 'x'.repeat(20_000);
  const first = partsOf(text);
  expect(first.map((part) => parts.take(part))).toEqual([undefined, undefined, undefined, text]);
  const [begun = '', ...rest] = partsOf(text);
  parts.take(begun);
  for (let at = 0; at < 64; at++) {
    parts.take(partsOf(text)[0] as string);
  }
  expect(rest.map((part) => parts.take(part))).toEqual([undefined, undefined, undefined]);
  for (const wrong of ['note', 'note x', 'note a:0:0 x', 'note a:5:2 x', 'note a:0:9999 x', 'note a:-1:2 x', 'other a:0:1 eA==']) {
    expect(parts.take(wrong)).toBeUndefined();
  }
});
