import type { LockService } from '../../lib/nest/lock.service';
import { healthWith } from '../support/health-with';
import { makeLocks } from '../support/make-locks';
import { QuorumStores } from '../support/quorum-stores';
import { RedisQuorum } from '../support/redis-quorum';
import { until } from '../support/until';

let stores: QuorumStores;
let locks: LockService;

beforeEach(async () => {
  stores = new QuorumStores(await RedisQuorum.start(3), { longestLease: '60s' });
  locks = makeLocks(await stores.open());
  await healthWith(locks);
});
afterEach(() => stores.stop());

const VOTES = { reachable: true, voting: true };
const AWAY = { reachable: false, voting: false };

test('a quorum says of each server whether it answers and votes', async () => {
  const health = await healthWith(locks);
  expect(health).toEqual({
    status: 'up',
    reasons: [],
    reachable: true,
    server: 'Redis',
    latencyMs: expect.any(Number),
    clockSkewMs: expect.any(Number),
    members: [VOTES, VOTES, VOTES],
    majority: 2,
    heldHere: 0,
    waitingHere: 0,
    evicts: false,
  });
  expect(JSON.stringify(health)).not.toContain('127.0');
});

test.each<[string, (place: number) => unknown]>([
  ['killed', (place) => stores.quorum.at(place).kill()],
  ['stopped', (place) => stores.quorum.at(place).pause()],
  ['cut off', (place) => (stores.quorum.proxy(place).mode = 'blackhole')],
])('a minority that is %s degrades it, and a majority takes it down at once', async (_, strike) => {
  await strike(1);
  expect(await healthWith(locks, 'membersAway')).toMatchObject({ status: 'degraded', reachable: true, members: [VOTES, AWAY, VOTES] });
  await strike(2);
  const { members, status } = await healthWith(locks, 'unreachable', 'noMajority', 'membersAway');
  expect({ members, status }).toEqual({ members: [VOTES, AWAY, AWAY], status: 'down' });
});

test.each([
  ['full', ['CONFIG', 'SET', 'maxmemory', '1'], ['CONFIG', 'SET', 'maxmemory', '0']],
  ['readOnly', ['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE']],
] as const)('a server that answers and is %s has no vote, without a call, until that ends', async (refuses, begin, end) => {
  // A connection to a replica is made anew from time to time, and is not there for a moment.
  const untilMembers = (...members: readonly object[]): Promise<void> =>
    until('the members', async () => JSON.stringify((await locks.operations.health()).members) === JSON.stringify(members));
  const call = (place: number, [command, ...words]: typeof begin | typeof end): Promise<unknown> =>
    stores.quorum.at(place).client.call(command, ...words);
  const refusing = { reachable: true, voting: false, refuses };
  await call(1, begin);
  await untilMembers(VOTES, refusing, VOTES);
  expect(await healthWith(locks, 'membersAway')).toMatchObject({ status: 'degraded' });
  await locks.withLock('k', () => undefined);
  await call(2, begin);
  await untilMembers(VOTES, refusing, refusing);
  expect(await healthWith(locks, 'noMajority', 'membersAway')).toMatchObject({ status: 'down' });
  await expect(locks.acquire('k', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE' });
  await call(0, begin);
  expect(await healthWith(locks, 'noMajority', refuses, 'membersAway')).toMatchObject({ status: 'down', refuses });
  await Promise.all([0, 1, 2].map((place) => call(place, end)));
  expect(await healthWith(locks)).toMatchObject({ status: 'up', members: [VOTES, VOTES, VOTES] });
});

test('servers that restarted answer, and do not vote', async () => {
  for (const place of [0, 1]) {
    await stores.quorum.at(place).kill();
    await stores.quorum.at(place).start();
  }
  await until(
    'that they are connected again',
    async () => (await locks.operations.health()).members?.every(({ reachable }) => reachable) === true,
  );
  expect(await healthWith(locks, 'noMajority', 'membersAway')).toMatchObject({
    status: 'down',
    reachable: true,
    members: [{ reachable: true, voting: false }, { reachable: true, voting: false }, VOTES],
  });
});

test('one server that evicts is shown', async () => {
  await stores.quorum.at(2).client.config('SET', 'maxmemory-policy', 'allkeys-lru');
  const other = makeLocks(await stores.open());
  expect(await other.operations.health()).toMatchObject({ evicts: true });
});
