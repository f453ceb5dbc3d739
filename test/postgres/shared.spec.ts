import type { Shares } from '../../lib/core/seam/lock-store';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import { LockConfigurationError } from '../../lib/core/words/errors';
import { MOST_HOLDS } from '../../lib/kit/protocol';
import { placeEnd } from '../../lib/core/seam/shares';
import { PostgresLockStore, schemaSql } from '../../lib/postgres/index';
import { newHold } from '../support/new-hold';
import { noWarning } from '../support/no-warning';
import { opened } from '../support/opened';
import { patient } from '../support/patient';
import { connected, PostgresServer } from '../support/postgres-server';
import { refusalOf } from '../support/refusal-of';
import { saying } from '../support/saying';

let server: PostgresServer;
let store: PostgresLockStore;
let other: PostgresLockStore;

beforeAll(async () => {
  server = await PostgresServer.start();
  await server.query(schemaSql());
  await server.query('CREATE ROLE writer LOGIN');
});
beforeEach(async () => {
  await server.query('TRUNCATE distributed_lock.lease, distributed_lock.done, distributed_lock.shared');
  [store, other] = [await open(), await open()];
});
afterAll(() => server.stop());

async function open(user = 'postgres'): Promise<PostgresLockStore> {
  const made = await opened(new PostgresLockStore(await connected(server.pool({ connectionString: server.urlFor(user) }))), (message) =>
    noWarning(message, 'fsync is off'),
  );
  return patient(made);
}

function hold(shares?: Shares, changes: Partial<HoldRecord> = {}): HoldRecord {
  return newHold('k', { ttlMs: 60_000, shares, ...changes });
}

/** The hold at the fence of its grant. */
async function enters(at: PostgresLockStore, shares?: Shares): Promise<HoldRecord> {
  const wanted = hold(shares);
  const { fence } = await at.acquire(wanted);
  expect(fence).toBeGreaterThan(0);
  return { ...wanted, fence: fence ?? 0 };
}

async function waits(at: PostgresLockStore, name: string, shares?: Shares): Promise<void> {
  expect((await at.acquire(hold(shares), { name: `${name}${placeEnd(shares)}` })).fence).toBeUndefined();
}

test('acquires and releases of one turn of the event loop are carried out together, whatever they want', async () => {
  const keys = ['a', 'b', 'c', 'a', 'b', 'c'];
  const wanted = keys.map((key, at) => newHold(key, { ttlMs: 60_000, shares: at < 3 ? 'read' : undefined }));
  const readers = [...wanted.slice(0, 3), ...keys.slice(0, 3).map((key) => newHold(key, { ttlMs: 60_000, shares: 'read' }))];
  const replies = await Promise.all(readers.map((each) => store.acquire(each)));
  expect(replies.map(({ fence = 0 }) => fence > 0)).toEqual(keys.map(() => true));
  const writers = await Promise.all(wanted.slice(3).map((each) => store.acquire(each)));
  expect(writers.map(({ fence }) => fence)).toEqual([undefined, undefined, undefined]);
  expect(await Promise.all(readers.map((each) => store.release(each)))).toEqual(keys.map(() => true));
  expect((await Promise.all(wanted.slice(3).map((each) => store.acquire(each)))).every(({ fence = 0 }) => fence > 0)).toBe(true);
});

test('a ticket of a reader lets as many holds in as a lock may have, and no more', async () => {
  const reader = await enters(store, 'read');
  const guest = { ...reader, id: 'guest' };
  expect([await other.join(guest), await other.join(guest)]).toEqual([true, true]);
  expect(await other.join({ ...guest, id: 'late', fence: reader.fence - 1 })).toBe(false);
  await server.query(
    `INSERT INTO distributed_lock.shared (key, name, shares, ttl_ms, ends, owner, process, since, holder)
     SELECT key, n, shares, ttl_ms, ends, owner, process, since, holder FROM distributed_lock.shared, generate_series(3, ${MOST_HOLDS}) AS n WHERE name = 'guest'`,
  );
  await expect(other.join({ ...guest, id: 'one more' })).rejects.toThrow(saying(`${MOST_HOLDS} holds are in it already`));
  expect(await other.join(guest)).toBe(true);
  expect((await other.acquire(hold('read'))).fence).toBeUndefined();
});

test('a search finds keys that are shared, and none that is only reserved', async () => {
  const reader = await enters(store, 'read');
  await store.acquire(newHold('l', { shares: 4, ttlMs: 60_000 }));
  const found = async (): Promise<unknown[]> => {
    const locks: unknown[] = [];
    for await (const page of store.search('')) {
      locks.push(...page.map(({ key, shares, holds }) => ({ key, shares, holds })));
    }
    return locks;
  };
  expect(await found()).toEqual([
    { key: 'k', shares: 'read', holds: 1 },
    { key: 'l', shares: 4, holds: 1 },
  ]);
  await waits(other, 'w');
  await waits(other, 'a', 'read');
  await store.release(reader);
  await other.leave('k', 'w');
  expect(await server.query(`SELECT FROM distributed_lock.shared WHERE key = 'lock:{k}'`)).toHaveLength(1);
  expect(await found()).toEqual([{ key: 'l', shares: 4, holds: 1 }]);
});

test('those who never share a key need no right on its table, and those who do are told which', async () => {
  await server.query('DROP OWNED BY writer');
  await server.query('GRANT USAGE ON SCHEMA distributed_lock TO writer');
  await server.query('GRANT SELECT, INSERT, UPDATE, DELETE ON distributed_lock.lease, distributed_lock.done TO writer');
  const without = await open('writer');
  const first = await enters(without);
  await waits(without, 'w');
  expect(await without.renew([first])).toEqual([true]);
  expect(await without.release(first)).toBe(true);
  await without.leave('k', 'w');
  expect([await without.inspect('k'), await without.forceRelease('k', 1)]).toEqual([null, false]);
  await server.query('SET ROLE writer; SELECT distributed_lock.tidy(); RESET ROLE');
  const refusal = await refusalOf(() => without.acquire(hold('read')));
  expect(refusal).toBeInstanceOf(LockConfigurationError);
  expect((refusal as LockConfigurationError).detail).toMatch(/table shared.*SELECT, INSERT, UPDATE and DELETE on its tables/);
  await server.query('GRANT SELECT, INSERT, UPDATE, DELETE ON distributed_lock.shared TO writer');
  await enters(without, 'read');
});

test('a lease of write mode touches no row of those who share', async () => {
  const reader = await enters(store, 'read');
  await server.query(
    `UPDATE distributed_lock.lease SET ends = clock_timestamp(); UPDATE distributed_lock.shared SET ends = clock_timestamp()`,
  );
  const rows = (): Promise<unknown[]> => server.query('SELECT xmin, ctid, * FROM distributed_lock.shared');
  const before = await rows();
  const writer = await enters(store);
  expect(await store.renew([writer, reader])).toEqual([true, false]);
  await store.release(writer);
  expect(await rows()).toEqual(before);
  // They count no more.
  await enters(store, 'read');
  expect(await store.inspect('k')).toMatchObject({ holds: 1 });
});
