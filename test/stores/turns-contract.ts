import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AcquireReply, HoldRecord, Place, Turns } from '../../lib/core/lock-store';
import type { StorePlace, WholeStore } from '../support/stores';

/** For how long a lock is reserved for whoever has its turn. */
const CLAIM_MS = 1_000;

/** What every store does that keeps the order of those who wait. Each operation may be sent twice. */
export function turnsContract(place: () => StorePlace): void {
  let store: WholeStore & { turns: Turns };
  let key: string;
  let told: string[];

  beforeEach(async () => {
    const connected = await place().connect();
    if (!connected.turns) {
      throw new Error('the store keeps no order');
    }
    store = connected as typeof store;
    const ownKey = `key ${randomUUID()}`;
    const ownTold: string[] = [];
    key = ownKey;
    told = ownTold;
    store.turns.onTurn({ turn: (of, name) => of === ownKey && ownTold.push(name), recheck: () => undefined });
  });

  const newHold = (changes: Partial<HoldRecord> = {}): HoldRecord => ({
    key,
    owner: randomUUID(),
    id: randomUUID(),
    fence: 0,
    ttlMs: 5_000,
    limitMs: 1_000,
    lingering: false,
    by: 'tester',
    ...changes,
  });
  const newPlace = (): Place => ({ name: `place${randomUUID().slice(0, 8)}` });
  const isGranted = async (reply: Promise<AcquireReply>): Promise<boolean> => (await reply).fence !== undefined;

  async function holder(changes: Partial<HoldRecord> = {}): Promise<HoldRecord> {
    const hold = newHold(changes);
    expect(await isGranted(store.acquire(hold))).toBe(true);
    return hold;
  }

  async function queue(): Promise<{ hold: HoldRecord; at: Place }> {
    const waiter = { hold: newHold(), at: newPlace() };
    expect(await isGranted(store.acquire(waiter.hold, waiter.at))).toBe(false);
    return waiter;
  }

  async function pass(
    hold: HoldRecord,
    next: HoldRecord,
    at: Place,
    mayOvertake: boolean,
  ): Promise<{ released: boolean; reply: AcquireReply }> {
    const { released, reply } = await store.turns.exchange(hold, next, at, mayOvertake);
    return { released, reply: await reply };
  }

  test('a released lock is reserved for the first in the queue, which is told, and only it', async () => {
    const first = await holder();
    const second = await queue();
    const third = await queue();
    await store.release(first);
    await sleep(30);
    expect(told).toEqual([second.at.name]);
    expect(await isGranted(store.acquire(newHold()))).toBe(false);
    expect(await isGranted(store.acquire(third.hold, third.at))).toBe(false);
    expect(await isGranted(store.acquire(second.hold, second.at))).toBe(true);
  });

  test('a newcomer that finds the lock free and others first hands it to the first of them', async () => {
    await holder({ ttlMs: 100 });
    const second = await queue();
    await sleep(130);
    expect(await isGranted(store.acquire(newHold()))).toBe(false);
    await sleep(30);
    expect(told).toEqual([second.at.name]);
    expect(await isGranted(store.acquire(second.hold, second.at))).toBe(true);
  });

  test('the first in the queue takes a lock whose lease has ended', async () => {
    await holder({ ttlMs: 100 });
    const second = await queue();
    await sleep(130);
    expect(await isGranted(store.acquire(second.hold, second.at))).toBe(true);
  });

  test('a turn that nobody claims passes to the next, and not to the same again', async () => {
    const first = await holder();
    const second = await queue();
    const third = await queue();
    await store.release(first);
    await sleep(CLAIM_MS + 50);
    expect(await isGranted(store.acquire(second.hold, second.at))).toBe(false);
    expect(await isGranted(store.acquire(third.hold, third.at))).toBe(true);
  });

  test('an attempt that is sent twice keeps its place', async () => {
    const first = await holder();
    const second = await queue();
    await queue();
    expect(await isGranted(store.acquire(second.hold, second.at))).toBe(false);
    expect((await store.operator.inspect(key))?.waiters).toHaveLength(2);
    await store.release(first);
    expect(await isGranted(store.acquire(second.hold, second.at))).toBe(true);
  });

  test('whoever leaves the queue is not told, and leaving again takes nobody else away', async () => {
    const first = await holder();
    const second = await queue();
    const third = await queue();
    await store.turns.leave(key, second.at.name);
    await store.turns.leave(key, second.at.name);
    await store.release(first);
    await sleep(30);
    expect(told).toEqual([third.at.name]);
  });

  test('whoever leaves with its turn hands it to the next', async () => {
    const first = await holder();
    const second = await queue();
    const third = await queue();
    await store.release(first);
    await store.turns.leave(key, second.at.name);
    await sleep(30);
    expect(told).toEqual([second.at.name, third.at.name]);
    await store.turns.leave(key, third.at.name);
    expect(await isGranted(store.acquire(newHold()))).toBe(true);
  });

  test('leaving a place takes no later one away, nor a lock', async () => {
    const first = await holder();
    const second = await queue();
    await store.turns.leave(key, second.at.name);
    const again = newPlace();
    await store.acquire(second.hold, again);
    await store.turns.leave(key, second.at.name);
    expect((await store.operator.inspect(key))?.waiters).toHaveLength(1);
    await store.release(first);
    expect(await isGranted(store.acquire(second.hold, again))).toBe(true);
    await store.turns.leave(key, again.name);
    expect(await store.operator.inspect(key)).toMatchObject({ holds: 1 });
  });

  test('passing releases and grants in one, with an owner, a hold and a fence of its own', async () => {
    const first = await holder();
    const before = await store.operator.inspect(key);
    const next = newHold({ by: 'next' });
    const at = newPlace();
    const answer = await pass(first, next, at, true);
    expect(answer.released).toBe(true);
    expect(answer.reply.fence).toBeGreaterThan(before?.fence ?? Infinity);
    expect(await store.operator.inspect(key)).toMatchObject({ holds: 1, by: 'next', fence: answer.reply.fence });
    expect(await pass(first, next, at, true)).toMatchObject({ released: true, reply: { fence: answer.reply.fence } });
    expect(await store.renew([{ ...next, fence: answer.reply.fence ?? 0 }])).toEqual([true]);
    expect(await store.release(first)).toBe(true);
    expect(await store.operator.inspect(key)).toMatchObject({ by: 'next' });
  });

  test('passing to a hold that has ended hands over instead, and takes nothing', async () => {
    const first = await holder();
    const second = await queue();
    const next = newHold();
    await store.release(next);
    expect(await isGranted(pass(first, next, newPlace(), true).then(({ reply }) => reply))).toBe(false);
    await sleep(30);
    expect(told).toEqual([second.at.name]);
    expect(await isGranted(store.acquire(second.hold, second.at))).toBe(true);
    expect((await store.operator.inspect(key))?.waiters).toEqual([]);
  });

  test('passing goes before the queue only where it may', async () => {
    const first = await holder();
    const second = await queue();
    const next = newHold();
    expect(await isGranted(pass(first, next, newPlace(), true).then(({ reply }) => reply))).toBe(true);
    const last = newHold();
    const at = newPlace();
    expect(await isGranted(pass(next, last, at, false).then(({ reply }) => reply))).toBe(false);
    await sleep(30);
    expect(told).toEqual([second.at.name]);
    expect(await isGranted(pass(next, last, at, false).then(({ reply }) => reply))).toBe(false);
    expect(await isGranted(store.acquire(second.hold, second.at))).toBe(true);
    expect((await store.operator.inspect(key))?.waiters).toHaveLength(1);
    await store.release(second.hold);
    expect(await isGranted(store.acquire(last, at))).toBe(true);
  });

  test('passing where nobody queues grants, whether or not it may go before others', async () => {
    const first = await holder();
    expect(await isGranted(pass(first, newHold(), newPlace(), false).then(({ reply }) => reply))).toBe(true);
  });

  test('passing a lock that is gone says so, and takes it only if it is free', async () => {
    const first = await holder({ ttlMs: 100 });
    await sleep(130);
    const other = await holder();
    const next = newHold();
    const answer = await pass(first, next, newPlace(), true);
    expect(answer).toMatchObject({ released: false, reply: { holder: { by: 'tester' } } });
    expect(await store.release(other)).toBe(true);
  });

  test('passing beside a further hold of the same lock queues', async () => {
    const first = await holder();
    const fence = (await store.operator.inspect(key))?.fence ?? 0;
    const guest = { ...first, fence, id: randomUUID() };
    expect(await store.tickets.join(guest)).toBe(true);
    const next = newHold();
    const at = newPlace();
    expect(await pass(first, next, at, true)).toMatchObject({ released: true, reply: { holder: { by: 'tester' } } });
    expect(await store.operator.inspect(key)).toMatchObject({ holds: 1, fence });
    await store.release(guest);
    await sleep(30);
    expect(told).toEqual([at.name]);
    expect(await isGranted(store.acquire(next, at))).toBe(true);
  });

  test('a join enters past the queue, a forced release hands over', async () => {
    const first = await holder();
    const second = await queue();
    const fence = (await store.operator.inspect(key))?.fence ?? 0;
    expect(await store.tickets.join({ ...first, fence, id: randomUUID() })).toBe(true);
    expect(await store.operator.forceRelease(key, fence)).toBe(true);
    expect(await isGranted(store.acquire(newHold()))).toBe(false);
    expect(await isGranted(store.acquire(second.hold, second.at))).toBe(true);
  });

  test('a repeated release after the turn was given does not give it again', async () => {
    const first = await holder();
    const second = await queue();
    await queue();
    await store.release(first);
    await store.release(first);
    await sleep(30);
    expect(told).toEqual([second.at.name]);
  });

  test('an acquire of a hold that has ended neither takes nor queues', async () => {
    const first = await holder();
    const late = newHold();
    await store.release(late);
    expect(await isGranted(store.acquire(late, newPlace()))).toBe(false);
    expect((await store.operator.inspect(key))?.waiters).toEqual([]);
    await store.release(first);
  });

  test('inspect shows who waits, each by host and process id', async () => {
    await holder();
    await queue();
    expect((await store.operator.inspect(key))?.waiters).toEqual([expect.stringMatching(new RegExp(`^\\S+ \\(pid ${process.pid}\\)$`))]);
  });
}
