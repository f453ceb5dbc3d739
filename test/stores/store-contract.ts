import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockConfigurationError } from '../../lib/core/errors';
import type { HoldRecord } from '../../lib/core/lock-store';
import type { StorePlace, WholeStore } from '../support/stores';
import { saying } from '../support/saying';

function hold(key: string, changes: Partial<HoldRecord> = {}): HoldRecord {
  return { key, owner: randomUUID(), id: randomUUID(), fence: 0, ttlMs: 5_000, limitMs: 1_000, lingering: false, by: 'tester', ...changes };
}

/** What every store does on single attempts, each of which may be sent twice. */
export function storeContract(place: () => StorePlace): void {
  let store: WholeStore;
  let key: string;

  beforeEach(async () => {
    store = await place().connect();
    key = `key ${randomUUID()}`;
  });

  async function acquired(changes: Partial<HoldRecord> = {}): Promise<HoldRecord> {
    const wanted = hold(key, changes);
    const { fence } = await store.acquire(wanted);
    if (fence === undefined) {
      throw new Error('busy');
    }
    return { ...wanted, fence };
  }

  test('a free lock is granted, and busy for every other owner, who learns by whom and for how long', async () => {
    await acquired({ by: 'worker-3' });
    await sleep(30);
    const reply = await store.acquire(hold(key));
    expect(reply.fence).toBeUndefined();
    expect(reply).toMatchObject({ holder: { by: 'worker-3' } });
    if (reply.fence === undefined) {
      expect(reply.remainingMs).toBeGreaterThan(4_000);
      expect(reply.remainingMs).toBeLessThanOrEqual(5_000);
      expect(reply.holder.heldMs).toBeGreaterThanOrEqual(20);
      expect(reply.holder.heldMs).toBeLessThan(2_000);
    }
  });

  test('an acquire sent twice answers the same fence and does not shorten the lease', async () => {
    const first = await acquired();
    expect((await store.acquire({ ...first, ttlMs: 100 })).fence).toBe(first.fence);
    expect((await store.operator.inspect(key))?.remainingMs).toBeGreaterThan(4_000);
    expect((await store.operator.inspect(key))?.holds).toBe(1);
  });

  test('an acquire sent again later has a whole lease from then on', async () => {
    const first = await acquired({ ttlMs: 400 });
    await sleep(250);
    expect((await store.acquire(first)).fence).toBe(first.fence);
    expect((await store.operator.inspect(key))?.remainingMs).toBeGreaterThan(300);
  });

  test('a lease ends by itself, and the next grant has a higher fence', async () => {
    const first = await acquired({ ttlMs: 100 });
    await sleep(130);
    expect(await store.operator.inspect(key)).toBeNull();
    expect((await acquired()).fence).toBeGreaterThan(first.fence);
  });

  test('fences rise strictly with every grant', async () => {
    let last = 0;
    for (let round = 0; round < 50; round++) {
      const granted = await acquired();
      expect(granted.fence).toBeGreaterThan(last);
      last = granted.fence;
      await store.release(granted);
    }
  });

  test('a renewal extends the lease and never shortens it', async () => {
    const granted = await acquired({ ttlMs: 300 });
    expect(await store.renew([{ ...granted, ttlMs: 5_000 }])).toEqual([true]);
    expect((await store.operator.inspect(key))?.remainingMs).toBeGreaterThan(4_000);
    expect(await store.renew([{ ...granted, ttlMs: 200 }])).toEqual([true]);
    expect((await store.operator.inspect(key))?.remainingMs).toBeGreaterThan(4_000);
  });

  test('a renewal by another owner, fence or hold is refused and changes nothing', async () => {
    const granted = await acquired({ ttlMs: 1_000 });
    const strangers = [
      { ...granted, owner: randomUUID() },
      { ...granted, fence: granted.fence - 1 },
      { ...granted, id: randomUUID() },
    ].map((stranger) => ({ ...stranger, ttlMs: 50_000 }));
    expect(await store.renew(strangers)).toEqual([false, false, false]);
    expect((await store.operator.inspect(key))?.remainingMs).toBeLessThanOrEqual(1_000);
  });

  test('a renewal of a hold that lingers makes the lease end with it, unless others are in the lock', async () => {
    const held = await acquired({ ttlMs: 20_000 });
    const guest = { ...held, id: randomUUID() };
    const lingering = { ...held, ttlMs: 3_000, limitMs: 1_000, lingering: true };
    await store.tickets.join(guest);
    expect(await store.renew([lingering])).toEqual([true]);
    expect((await store.operator.inspect(key))?.remainingMs).toBeGreaterThan(3_000);
    await store.release(guest);
    expect(await store.renew([lingering])).toEqual([true]);
    expect((await store.operator.inspect(key))?.remainingMs).toBeLessThanOrEqual(3_000);
    expect(await store.release(held)).toBe(true);
    expect(await store.renew([lingering])).toEqual([false]);
  });

  test('a renewal never creates a lock', async () => {
    const granted = await acquired();
    await store.release(granted);
    expect(await store.renew([granted])).toEqual([false]);
    expect(await store.operator.inspect(key)).toBeNull();
  });

  test('renewals of many locks are answered one by one', async () => {
    const granted = await acquired();
    const other = hold(`${key} of somebody else`);
    expect(await store.renew([other, granted, other])).toEqual([false, true, false]);
  });

  test('a release frees the lock, and sent twice answers the same without touching the next owner', async () => {
    const first = await acquired();
    expect(await store.release(first)).toBe(true);
    const next = await acquired();
    expect(await store.release(first)).toBe(true);
    expect((await store.operator.inspect(key))?.fence).toBe(next.fence);
  });

  test('a release of a lock that is gone says so, however often it is sent', async () => {
    const first = await acquired({ ttlMs: 100 });
    await sleep(130);
    const next = await acquired();
    expect(await store.release(first)).toBe(false);
    expect(await store.release(first)).toBe(false);
    expect((await store.operator.inspect(key))?.fence).toBe(next.fence);
  });

  test('an acquire that arrives after its own release is refused', async () => {
    const late = hold(key);
    await store.release(late);
    expect((await store.acquire(late)).fence).toBeUndefined();
    expect(await store.operator.inspect(key)).toBeNull();
  });

  test('a join adds a hold to the running lock, which is free when the last one has left', async () => {
    const first = await acquired();
    const second = { ...first, id: randomUUID() };
    expect(await store.tickets.join(second)).toBe(true);
    expect(await store.tickets.join(second)).toBe(true);
    expect((await store.operator.inspect(key))?.holds).toBe(2);
    await store.release(first);
    expect((await store.acquire(hold(key))).fence).toBeUndefined();
    expect(await store.renew([second])).toEqual([true]);
    await store.release(second);
    expect(await store.operator.inspect(key)).toBeNull();
  });

  test('a join never shortens the lease, and a longer one extends it', async () => {
    const first = await acquired({ ttlMs: 1_000 });
    await store.tickets.join({ ...first, id: randomUUID(), ttlMs: 100 });
    expect((await store.operator.inspect(key))?.remainingMs).toBeGreaterThan(800);
    await store.tickets.join({ ...first, id: randomUUID(), ttlMs: 9_000 });
    expect((await store.operator.inspect(key))?.remainingMs).toBeGreaterThan(8_000);
  });

  test('a join of a lock that has ended creates nothing, nor does one that arrives after its own release', async () => {
    const first = await acquired();
    const late = { ...first, id: randomUUID() };
    await store.release(late);
    expect(await store.tickets.join(late)).toBe(false);
    await store.release(first);
    expect(await store.tickets.join({ ...first, id: randomUUID() })).toBe(false);
    expect(await store.operator.inspect(key)).toBeNull();
    const next = await acquired();
    expect(await store.tickets.join({ ...first, id: randomUUID() })).toBe(false);
    expect(await store.tickets.join({ ...next, id: randomUUID(), fence: first.fence })).toBe(false);
  });

  test('a lock takes 1000 holds and no more, until one of them has left', async () => {
    const first = await acquired({ ttlMs: 20_000 });
    const others = Array.from({ length: 999 }, () => ({ ...first, id: randomUUID() }));
    for (let at = 0; at < others.length; at += 100) {
      const joined = await Promise.all(others.slice(at, at + 100).map((other) => store.tickets.join(other)));
      expect(new Set(joined)).toEqual(new Set([true]));
    }
    const late = { ...first, id: randomUUID() };
    await expect(store.tickets.join(late)).rejects.toBeInstanceOf(LockConfigurationError);
    await expect(store.tickets.join(late)).rejects.toThrow(saying(`Lock "${key}": 1000 holds are in it already`));
    expect((await store.operator.inspect(key))?.holds).toBe(1_000);
    // A command that is sent twice answers as it did first; a stranger is told nothing of how many there are.
    expect(await store.tickets.join(others[0] as HoldRecord)).toBe(true);
    expect(await store.tickets.join({ ...late, owner: randomUUID() })).toBe(false);
    await store.release(others[0] as HoldRecord);
    expect(await store.tickets.join(late)).toBe(true);
  });

  test('inspect shows the fence, the holds, the lease, since when and by whom, and no owner', async () => {
    const before = Date.now();
    const granted = await acquired({ by: 'worker-3 Balance.credit' });
    const seen = await store.operator.inspect(key);
    expect(seen).toMatchObject({ fence: granted.fence, holds: 1, by: 'worker-3 Balance.credit' });
    expect(Math.abs((seen?.since.getTime() ?? 0) - before)).toBeLessThan(2_000);
    expect(JSON.stringify(seen)).not.toContain(granted.owner);
    expect(JSON.stringify(seen)).not.toContain(granted.id);
  });

  test('a forced release needs the right fence, frees the lock and tells the process that holds it', async () => {
    const told: unknown[][] = [];
    store.operator.onForced((...message) => told.push(message));
    const granted = await acquired();
    expect(await store.operator.forceRelease(key, granted.fence - 1)).toBe(false);
    expect(await store.operator.forceRelease(key, granted.fence)).toBe(true);
    expect(await store.operator.forceRelease(key, granted.fence)).toBe(false);
    expect(await store.operator.inspect(key)).toBeNull();
    await sleep(50);
    expect(told.filter(([of]) => of === key)).toEqual([[key, granted.fence]]);
  });

  test.each([['{'], ['}{'], ['{a}'], ['a{b}c'], ['{}'], ['%7B'], ['a:b'], ['%'], ['ключ 🔑'], ['line\nbreak'], ['x'.repeat(1024)]])(
    'a key called %p is a key like any other',
    async (name) => {
      const granted = { ...hold(name), fence: 0 };
      const { fence = 0 } = await store.acquire(granted);
      expect(fence).toBeGreaterThan(0);
      expect((await store.acquire(hold(name))).fence).toBeUndefined();
      expect(await store.release({ ...granted, fence })).toBe(true);
    },
  );

  test('a lease that a renewal made longer is not cut back by who finds it busy, nor after a shorter join', async () => {
    const first = await acquired({ ttlMs: 1_000 });
    await store.renew([{ ...first, ttlMs: 9_000 }]);
    await store.acquire(hold(key));
    expect((await store.operator.inspect(key))?.remainingMs).toBeGreaterThan(8_000);
    await store.tickets.join({ ...first, id: randomUUID(), ttlMs: 1_000 });
    await store.acquire(hold(key));
    expect((await store.operator.inspect(key))?.remainingMs).toBeGreaterThan(8_000);
  });

  test('a join by another owner is refused and adds no hold', async () => {
    const granted = await acquired();
    expect(await store.tickets.join({ ...granted, owner: randomUUID(), id: randomUUID() })).toBe(false);
    expect((await store.operator.inspect(key))?.holds).toBe(1);
  });
}
