import { jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import { PostgresLockStore } from '../../lib/postgres/index';
import { patient } from '../support/patient';
import { connected, PostgresServer } from '../support/postgres-server';
import { until } from '../support/until';
import { newHold } from '../support/new-hold';
import { goOn, stopProcess } from '../support/stopping';

const realNow = performance.now.bind(performance);

let server: PostgresServer;
const opened: PostgresLockStore[] = [];

beforeAll(async () => {
  server = await PostgresServer.start();
  await new PostgresLockStore(server.pool()).ensureSchema();
});
afterEach(async () => {
  jest.restoreAllMocks();
  await Promise.all(opened.splice(0).map((store) => store.close()));
  await server.query('TRUNCATE distributed_lock.lease, distributed_lock.done');
});
afterAll(() => server.stop());

async function open(name: string): Promise<PostgresLockStore> {
  const store = new PostgresLockStore(await connected(server.pool({ max: 2, application_name: name })), { listen: false });
  opened.push(store);
  await store.open({ prefix: 'lock', warn: () => undefined });
  return store;
}

function hold(key: string, changes: Partial<HoldRecord> = {}): HoldRecord {
  return newHold(key, { ttlMs: 60_000, ...changes });
}

async function granted(store: PostgresLockStore, wanted: HoldRecord): Promise<HoldRecord> {
  return { ...wanted, fence: (await store.acquire(wanted)).fence ?? 0 };
}

/** This machine slept for so long: its monotonic clock stood still, and that of the server did not. */
function sleepFor(ms: number): void {
  jest.spyOn(performance, 'now').mockImplementation(() => realNow() - ms);
}

test('an acquire that the network kept for longer than its done mark takes no lock', async () => {
  const late = await open('late');
  const others = patient(await open('others'));
  const first = hold('k');
  const askedAt = performance.now();
  await late.acquire(first);
  await late.release(first);
  const clockIsKnownToMs = performance.now() - askedAt;
  const [backend] = await server.query<{ pid: number }>("SELECT pid FROM pg_stat_activity WHERE application_name = 'late'");
  const pid = backend?.pid as number;
  // The acquire lies in the socket of a process that is stopped.
  stopProcess(pid);
  const sentAt = performance.now();
  const wanted = hold('k');
  await expect(late.acquire(wanted)).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: true });
  await patient(late).release(wanted);
  // As ten seconds later.
  await server.query('DELETE FROM distributed_lock.done');
  // A second of its own, one for clocks that differ, and what the answers from which it knows the server's clock took.
  await sleep(sentAt + 2_200 + clockIsKnownToMs - performance.now());
  goOn(pid);
  await until('that it was carried out, and nobody was there for the reply', async () => {
    return (await server.query('SELECT FROM pg_stat_activity WHERE pid = $1', [pid])).length === 0;
  });
  expect(await others.inspect('k')).toBeNull();
  expect((await others.acquire(hold('k'))).fence).toBeGreaterThan(0);
});

describe('a function that is called too late', () => {
  const call = async (name: string, args: unknown[]): Promise<unknown> => {
    const places = args.map((_, at) => `$${at + 1}`).join(', ');
    const [row] = await server.query<{ reply: string }>(`SELECT distributed_lock.${name}(${places}) AS reply`, args);
    return JSON.parse(row?.reply ?? 'null');
  };
  const TOO_LATE = 1;
  const args = ({ key, owner, id }: HoldRecord, place: string | null = null): unknown[] => [`lock:{${key}}`, owner, id, 'host:1:aa', 60_000, 'tester', place, false]; // prettier-ignore

  test('acquires no lock: of a new key, of one that is free, of one whose turn it is', async () => {
    const store = patient(await open('store'));
    expect(await call('acquire', [...args(hold('k')), TOO_LATE])).toBe('late');
    expect(await call('acquire', [...args(hold('k')), TOO_LATE])).toBe('late');
    const first = await granted(store, hold('k'));
    const next = hold('k');
    expect(await call('acquire', [...args(next, 'host:1:aa:place'), TOO_LATE])).toEqual([expect.any(Number), 'tester', expect.any(Number), 0, 1, '', null, null]); // prettier-ignore
    await store.release(first);
    expect(await call('acquire', [...args(next, 'host:1:aa:place'), TOO_LATE])).toBe('late');
    expect(await store.inspect('k')).toBeNull();
    expect(await call('acquire', [...args(next, 'host:1:aa:place'), 0])).toBeGreaterThan(first.fence);
  });

  test('confirms a hold that is in, and refuses one that has ended', async () => {
    const store = patient(await open('store'));
    const first = await granted(store, hold('k'));
    expect(await call('acquire', [...args(first), TOO_LATE])).toBe(first.fence);
    await store.release(first);
    expect(await call('acquire', [...args(first), TOO_LATE])).toEqual([0, '', 0, -1, 0, '']);
  });

  test('exchanges for no grant, and releases all the same', async () => {
    const store = patient(await open('store'));
    const first = await granted(store, hold('k'));
    const next = hold('k');
    expect(await call('exchange', [...args(next, 'host:1:aa:place'), first.id, first.owner, true, true, TOO_LATE])).toEqual([1, 'late']);
    expect(await store.inspect('k')).toBeNull();
    expect(await call('exchange', [...args(next, 'host:1:aa:place'), first.id, first.owner, true, true, 0])).toEqual([
      1,
      expect.any(Number),
    ]);
  });

  test('enters no lock by a ticket, unless that hold is in', async () => {
    const store = patient(await open('store'));
    const first = await granted(store, hold('k'));
    const guest = ['lock:{k}', first.owner, first.fence, randomUUID(), 'host:1:aa', 60_000];
    expect(await call('join', [...guest, TOO_LATE])).toBe('late');
    expect((await store.inspect('k'))?.holds).toBe(1);
    expect(await call('join', [...guest, 0])).toBe(1);
    expect(await call('join', [...guest, TOO_LATE])).toBe(1);
  });
});

test('a process whose clock stood still is refused once, and has what it asks for at the second time', async () => {
  const store = patient(await open('store'));
  const first = await granted(store, hold('k'));
  sleepFor(60_000);
  const other = await granted(store, hold('other'));
  expect(other.fence).toBeGreaterThan(0);
  sleepFor(120_000);
  expect(await store.join({ ...other, id: randomUUID() })).toBe(true);
  sleepFor(180_000);
  const { released, reply } = await store.exchange(first, hold('k'), { name: 'place' }, true);
  expect(released).toBe(true);
  expect((await reply).fence).toBeGreaterThan(first.fence);
});

test('fences that no number can count any more are refused, and nothing is changed', async () => {
  const store = patient(await open('counting'));
  const held = await granted(store, hold('k'));
  await store.release(held);
  const [before] = await server.query<object>('UPDATE distributed_lock.lease SET fence = 9007199254740991 RETURNING *');
  await expect(store.acquire(hold('k'))).rejects.toMatchObject({
    code: 'LOCK_CONFIGURATION',
    detail: expect.stringMatching(/would be above 9007199254740991.*delete the row of the key/) as string,
  });
  expect(await server.query('SELECT * FROM distributed_lock.lease')).toEqual([before]);
});
