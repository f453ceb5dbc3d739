import { setTimeout as sleep } from 'node:timers/promises';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import { LockStoreError } from '../../lib/core/words/errors';
import { MySqlLockStore } from '../../lib/mysql/index';
import { MySqlPair } from '../support/mysql-pair';
import { newHold } from '../support/new-hold';
import { until } from '../support/until';

let pair: MySqlPair;
let store: MySqlLockStore;
const held = new Map<string, HoldRecord>();

/** The operations that answer a repetition by the rows that are there already. */
const OPERATIONS: Readonly<Record<string, (hold: HoldRecord) => Promise<unknown>>> = {
  acquire: (hold) => store.acquire({ ...hold, fence: 0, ttlMs: 5_000 }),
  join: (hold) => store.join({ ...hold, id: 'guest', ttlMs: 5_000 }),
  release: (hold) => store.release(hold),
  'release beside another one': (hold) => store.release(hold),
  // Where the commit of the try before keeps the row, it is not answered.
  renew: async (hold) => {
    const [answer] = await store.renew([{ ...hold, ttlMs: 5_000 }]);
    return answer ?? Promise.reject(new LockStoreError('no answer', hold.key, { unknown: true }));
  },
};

beforeAll(async () => {
  pair = await MySqlPair.start();
  store = new MySqlLockStore(pair.primary.pool({ user: MySqlPair.user }));
  await store.ensureSchema();
  await store.open({ prefix: 'lock', warn: () => undefined });
  for (const key of Object.keys(OPERATIONS)) {
    const hold = newHold(key, { ttlMs: 3_600_000 });
    held.set(key, { ...hold, fence: (await store.acquire(hold)).fence ?? 0 });
  }
  const beside = held.get('release beside another one') as HoldRecord;
  await store.join({ ...beside, id: 'guest' });
  await store.release({ ...beside, id: 'guest' });
  await pair.replica.kill();
});
afterAll(async () => {
  await store.close();
  await pair.stop();
});

test.each(Object.entries(OPERATIONS))('%s is not confirmed while the replica is away, however often it is sent', async (key, send) => {
  const hold = held.get(key) as HoldRecord;
  for (let tries = 0; tries < 3; tries++) {
    const outcome = await send(hold).catch((error: LockStoreError) => error.code);
    expect(outcome).toBe('LOCK_STORE');
    // The server was asked to end it, and its commit stays.
    await sleep(500);
  }
});

test('each is confirmed once the replica is back', async () => {
  await pair.replica.start();
  await pair.follow();
  for (const [key, send] of Object.entries(OPERATIONS)) {
    await until(`${key} is confirmed`, () =>
      send(held.get(key) as HoldRecord).then(
        () => true,
        () => false,
      ),
    );
  }
});
