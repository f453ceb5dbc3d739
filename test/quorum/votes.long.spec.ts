import 'reflect-metadata';
import { jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Busy, HoldRecord, StoredLock } from '../../lib/core/seam/lock-store';
import type { QuorumLockStore } from '../../lib/quorum/quorum-lock-store';
import { QuorumServer } from '../../lib/quorum/members/quorum-server';
import { SETTLE, VOTE } from '../../lib/quorum/votes/scripts';
import { makeLocks } from '../support/make-locks';
import { acquired, newHold, QuorumStores } from '../support/quorum-stores';
import { RedisQuorum } from '../support/redis-quorum';
import type { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';
import { saying } from '../support/saying';

const LOCK = 'lock:lock:{k}';
/** Far longer than any test: what is free sooner was released. */
const TTL_MS = 40_000;
/** The limit of a command, where a test waits until it is over. */
const LIMIT_MS = 300;

let stores: QuorumStores;
let store: QuorumLockStore;
let proxiesOfOther: TcpProxy[];
let other: QuorumLockStore;

beforeEach(async () => {
  stores = new QuorumStores(await RedisQuorum.start());
  store = await stores.open();
  proxiesOfOther = await stores.quorum.moreProxies();
  other = await stores.open(proxiesOfOther.map(({ url }) => url));
});
afterEach(async () => {
  await stores.stop();
  await Promise.all(proxiesOfOther.map((proxy) => proxy.stop()));
});

function setMode(proxies: readonly TcpProxy[], places: readonly number[], mode: TcpProxy['mode']): void {
  places.forEach((place) => ((proxies[place] as TcpProxy).mode = mode));
}

const ownersAt = (places: readonly number[]): Promise<(string | null)[]> =>
  Promise.all(places.map((place) => stores.quorum.at(place).client.hget(LOCK, 'owner')));

const isEverywhere = async ({ fence }: HoldRecord): Promise<boolean> =>
  (await stores.quorum.fences('k')).every((stored) => stored === String(fence));

/**
 * Sends the first command again that a server was sent of a script; a vote without its latest time, unless `whenever`
 * is false.
 */
async function repeater(place: number, { sha }: { sha: string }, whenever = true): Promise<() => Promise<unknown>> {
  const { client } = stores.quorum.at(place);
  const monitor = await client.monitor();
  const sent = new Promise<string[]>((resolve) => {
    monitor.on('monitor', (_time: string, [command = '', ...args]: string[]) => {
      if (command.toLowerCase() === 'evalsha' && args[0] === sha && !args.some((arg) => arg.includes('probe'))) {
        resolve(args);
        monitor.disconnect();
      }
    });
  });
  return async () => {
    const args = await sent;
    return client.call('evalsha', ...(sha === VOTE.sha && whenever ? [...args.slice(0, -1), '0'] : args));
  };
}

describe('votes that are no majority', () => {
  test('are withdrawn at once, and do not stand in the way for a lease', async () => {
    setMode(stores.quorum.proxies, [2, 3, 4], 'refuse');
    setMode(proxiesOfOther, [2], 'refuse');
    await expect(store.acquire(newHold('k', TTL_MS))).rejects.toThrow(saying(/3 of 5 servers gave no answer that counts/));
    // Of the four that it reaches, it needs one of the two that had voted.
    const next = await makeLocks(other).acquire('k', { ttl: TTL_MS, wait: 5_000 });
    await next.release();
  });

  test('of callers that come at the same time are sorted out by themselves', async () => {
    const all = await Promise.all([store, other, stores.open(), stores.open(), stores.open()]);
    let inside = 0;
    const turns = all.flatMap((each) =>
      [1, 2].map(() =>
        makeLocks(each).withLock('k', { ttl: TTL_MS, wait: 15_000 }, async ({ fence }) => {
          inside++;
          expect(inside).toBe(1);
          await sleep(5);
          inside--;
          return fence;
        }),
      ),
    );
    expect(new Set(await Promise.all(turns)).size).toBe(10);
  });

  test('of an attempt before do not count against the next one, and its late withdrawal takes nothing from it', async () => {
    const hold = newHold('k', TTL_MS);
    setMode(stores.quorum.proxies, [0, 1, 2], 'killOnReply');
    const first = store.acquire(hold);
    await until('the votes', async () => (await ownersAt([0, 1, 2])).every((owner) => owner === hold.owner));
    setMode(stores.quorum.proxies, [0, 1, 2], 'refuse');
    await expect(first).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: true });
    // A majority takes all three, and the earlier attempt holds them.
    setMode(stores.quorum.proxies, [3, 4], 'refuse');
    setMode(stores.quorum.proxies, [0, 1, 2], 'pass');
    let fence: number | undefined;
    await until('the grant', async () => {
      const reply = await store.acquire(hold).catch(() => undefined);
      // Unavailable until it is connected again, but never busy.
      expect(reply === undefined || reply.fence !== undefined).toBe(true);
      fence = reply?.fence;
      return fence !== undefined;
    });
    // The withdrawals of what was not answered are sent again every second.
    await sleep(2_500);
    expect(await ownersAt([0, 1, 2])).toEqual([hold.owner, hold.owner, hold.owner]);
    expect(await store.inspect('k')).toMatchObject({ fence, holds: 1 });
    expect(await store.renew([{ ...hold, fence: fence as number }])).toEqual([true]);
    expect(await store.release({ ...hold, fence: fence as number })).toBe(true);
    expect(await ownersAt([0, 1, 2])).toEqual([null, null, null]);
  });
});

describe('servers that lag', () => {
  test('are not believed about the holds, also where they answer first', async () => {
    const hold = await acquired(store, 'k', TTL_MS);
    await until('the lock everywhere', () => isEverywhere(hold));
    setMode(proxiesOfOther, [0, 1], 'blackhole');
    expect(await other.join({ ...hold, id: randomUUID() })).toBe(true);
    for (let time = 0; time < 20; time++) {
      expect(await store.inspect('k')).toMatchObject({ holds: 2 });
    }
    // Now no majority counts the same: the lock is shown all the same.
    await stores.quorum.at(4).kill();
    expect(await store.inspect('k')).toMatchObject({ fence: hold.fence, holds: 1 });
  });
});

describe('servers that lag in who renewed a lock', () => {
  test('show it all the same', async () => {
    const hold = await acquired(store, 'k', TTL_MS);
    await until('the lock everywhere', () => isEverywhere(hold));
    setMode(stores.quorum.proxies, [0, 1], 'blackhole');
    expect(await store.renew([{ ...hold, by: 'another call' }])).toEqual([true]);
    await stores.quorum.at(4).kill();
    expect(await other.inspect('k')).toMatchObject({ fence: hold.fence, holds: 1 });
  });
});

describe('a reply that is lost', () => {
  test("acquire's, from a majority: the lock ends up held once, and is free after its release", async () => {
    setMode(stores.quorum.proxies, [0, 1, 2], 'killOnReply');
    const acquiring = makeLocks(store).acquire('k', { ttl: TTL_MS });
    await sleep(100);
    setMode(stores.quorum.proxies, [0, 1, 2], 'pass');
    const lock = await acquiring;
    expect(await store.inspect('k')).toMatchObject({ fence: lock.fence, holds: 1 });
    await lock.release();
    await until('the release everywhere', async () => (await ownersAt([0, 1, 2, 3, 4])).every((owner) => owner === null));
  });

  test("acquire's, with a caller who gives up: the lock is free soon", async () => {
    setMode(stores.quorum.proxies, [0, 1, 2], 'dropReplies');
    await expect(makeLocks(store).acquire('k', { ttl: TTL_MS, wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: true });
    setMode(stores.quorum.proxies, [0, 1, 2], 'pass');
    await until('no vote', async () => (await ownersAt([0, 1, 2, 3, 4])).every((owner) => owner === null));
  });

  test("release's: it is sent again to each server that did not answer", async () => {
    const hold = await acquired(store, 'k', TTL_MS);
    await until('five votes', () => isEverywhere(hold));
    setMode(stores.quorum.proxies, [3, 4], 'blackhole');
    expect(await store.release(hold)).toBe(true);
    expect(await ownersAt([3, 4])).toEqual([hold.owner, hold.owner]);
    setMode(stores.quorum.proxies, [3, 4], 'pass');
    await until('the release everywhere', async () => (await ownersAt([3, 4])).every((owner) => owner === null));
  });
});

describe('a server that did not vote for the owner of a lock', () => {
  const STRANGER = { owner: 'stranger', fence: 1, ttl: TTL_MS, since: 0, by: 'a stranger', 'hold:stranger.1': 'a process' };
  /** A lock on three servers: another owner has the votes of the others. */
  async function narrowlyAcquired(): Promise<HoldRecord> {
    await Promise.all([3, 4].map((place) => stores.quorum.at(place).client.hset(LOCK, STRANGER)));
    return acquired(store, 'k', TTL_MS);
  }
  const strangerGoes = (): Promise<unknown> => Promise.all([3, 4].map((place) => stores.quorum.at(place).client.del(LOCK)));
  const renewsEverywhere = (hold: HoldRecord): Promise<void> =>
    until('five votes', async () => {
      expect(await store.renew([hold])).toEqual([true]);
      return isEverywhere(hold);
    });

  test('votes for it with a renewal, once it may: two servers may then be away', async () => {
    const hold = await narrowlyAcquired();
    expect(await store.renew([hold])).toEqual([true]);
    expect(await ownersAt([3, 4])).toEqual(['stranger', 'stranger']);
    await strangerGoes();
    const { client } = stores.quorum.at(4);
    await client.set('lock:fence:{0}', hold.fence + 9_000_000);
    await renewsEverywhere(hold);
    // A fence that this server has given out is not given again.
    expect(Number(await client.get('lock:fence:{0}'))).toBeGreaterThanOrEqual(hold.fence + 9_000_000);
    await Promise.all([0, 1].map((place) => stores.quorum.at(place).kill()));
    expect(await store.renew([hold])).toEqual([true]);
    expect(await store.release(hold)).toBe(true);
    expect(await ownersAt([2, 3, 4])).toEqual([null, null, null]);
  });

  test('votes for it with a renewal also where each of its answers takes most of the time limit', async () => {
    const limitMs = 1_000;
    const hold = { ...(await narrowlyAcquired()), limitMs };
    await strangerGoes();
    // The vote follows two answers: the one to the renewal, and the one that no vote with another fence is there.
    [3, 4].forEach((place) => (stores.quorum.proxy(place).latencyMs = 0.6 * limitMs));
    await renewsEverywhere(hold);
    [3, 4].forEach((place) => (stores.quorum.proxy(place).latencyMs = 0));
    await Promise.all([0, 1].map((place) => stores.quorum.at(place).kill()));
    await until('the renewal', () =>
      store.renew([hold]).then(
        ([held]) => held === true,
        () => false,
      ),
    );
  });

  test('votes for it also after it was emptied, one after the other', async () => {
    const hold = await acquired(store, 'k', TTL_MS);
    for (const place of [0, 1, 2, 3, 4]) {
      await renewsEverywhere(hold);
      await stores.quorum.at(place).client.flushall();
    }
    await renewsEverywhere(hold);
    expect((await other.acquire(newHold('k'))).fence).toBeUndefined();
  });

  /** Each of the servers is emptied, and votes again with a renewal. */
  async function emptied(by: QuorumLockStore, renewal: HoldRecord): Promise<void> {
    for (const place of [0, 1, 2, 3, 4]) {
      await stores.quorum.at(place).client.flushall();
      await until('five votes', async () => {
        expect(await by.renew([renewal])).toEqual([true]);
        return isEverywhere(renewal);
      });
    }
  }

  test('votes for what the lock was: who holds it, since when, until when, and its fences', async () => {
    const grantedAt = performance.now();
    const asked = { ...newHold('k', TTL_MS), by: 'the holder', fences: 16 };
    const { fence } = (await store.acquire(asked)) as { fence: number };
    const hold = { ...asked, fence };
    await until('five votes', () => isEverywhere(hold));
    const before = await store.inspect('k');
    await sleep(1_000);
    // Core says who holds a lock only where it is another call than the one that was granted, and asks for 1 ms to have
    // a lease confirmed.
    const renewal = { ...hold, ttlMs: 1, by: '' };
    await emptied(store, renewal);
    const stillFor = performance.now() - grantedAt;
    expect(await store.inspect('k')).toMatchObject({ fence, by: 'the holder', holds: 1 });
    const after = await store.inspect('k');
    expect(Math.abs(Number(after?.since) - Number(before?.since))).toBeLessThan(500);
    expect(after?.remainingMs).toBeGreaterThan(TTL_MS - stillFor - 1_000);
    const counters = await Promise.all(stores.quorum.servers.map(({ client }) => client.get('lock:fence:{0}')));
    expect(counters.map(Number).filter((counter) => counter < fence + 15)).toEqual([]);
    const busy = await other.acquire(newHold('k'));
    expect(busy).toMatchObject({ holder: { by: 'the holder', heldMs: expect.any(Number) } });
    expect((busy as Busy).holder.heldMs).toBeGreaterThanOrEqual(1_000);
    // The lease serves another call meanwhile.
    expect(await store.renew([{ ...renewal, by: 'the next one' }])).toEqual([true]);
    await emptied(store, renewal);
    expect(await other.inspect('k')).toMatchObject({ fence, by: 'the next one' });
  });

  test('votes for whoever joined by a ticket, also where the call that was granted has left', async () => {
    const hold = await acquired(store, 'k', TTL_MS);
    const before = await store.inspect('k');
    await sleep(1_000);
    const guest = { ...hold, id: randomUUID(), by: 'a guest' };
    expect(await other.join(guest)).toBe(true);
    await until('five guests', async () => {
      expect(await other.renew([guest])).toEqual([true]);
      return (await other.inspect('k'))?.holds === 2 && isEverywhere(hold);
    });
    expect(await store.release(hold)).toBe(true);
    await emptied(other, guest);
    const { since, ...stored } = (await store.inspect('k')) as StoredLock;
    expect(stored).toMatchObject({ fence: hold.fence, by: 'a guest', holds: 1 });
    expect(Math.abs(since.getTime() - Number(before?.since))).toBeLessThan(500);
    expect((await store.acquire(newHold('k'))).fence).toBeUndefined();
    expect(await other.release(guest)).toBe(true);
    await until('the release', async () => (await ownersAt([0, 1, 2, 3, 4])).every((owner) => owner === null));
    // A vote that comes late does not let it in again.
    await other.renew([guest]);
    await sleep(300);
    expect(await ownersAt([0, 1, 2, 3, 4])).toEqual([null, null, null, null, null]);
  });

  test('lets in whoever joined by a ticket as well: two servers may then be away', async () => {
    const hold = await acquired(store, 'k', TTL_MS);
    await until('five votes', () => isEverywhere(hold));
    setMode(proxiesOfOther, [3, 4], 'refuse');
    const guest = { ...hold, id: randomUUID() };
    expect(await other.join(guest)).toBe(true);
    setMode(proxiesOfOther, [3, 4], 'pass');
    const guestsAt = (places: readonly number[]): Promise<number[]> =>
      Promise.all(places.map((place) => stores.quorum.at(place).client.hexists(LOCK, `hold:${guest.id}`)));
    await until('five guests', async () => {
      expect(await other.renew([guest])).toEqual([true]);
      return (await guestsAt([0, 1, 2, 3, 4])).every((isIn) => isIn === 1);
    });
    await Promise.all([0, 1].map((place) => stores.quorum.at(place).kill()));
    expect(await other.renew([guest])).toEqual([true]);
    expect(await other.release(guest)).toBe(true);
    // A late command does not let it in again.
    await other.renew([guest]);
    await sleep(300);
    expect(await guestsAt([2, 3, 4])).toEqual([0, 0, 0]);
    expect(await store.release(hold)).toBe(true);
  });

  test('refuses that vote where the lock was released before it came', async () => {
    const hold = await narrowlyAcquired();
    await strangerGoes();
    const { client } = stores.quorum.at(4);
    const again = await repeater(4, VOTE);
    await renewsEverywhere(hold);
    expect(await store.release(hold)).toBe(true);
    await until('the release', async () => (await ownersAt([4]))[0] === null);
    const next = await acquired(other, 'k', TTL_MS);
    await until('five votes', () => isEverywhere(next));
    expect(await again()).toEqual([0, '', 0, 0, expect.any(Number)]);
    expect(await other.release(next)).toBe(true);
    await until('the release', async () => (await ownersAt([4]))[0] === null);
    expect(await again()).toEqual([0, '', 0, 0, expect.any(Number)]);
    expect(await client.exists(LOCK)).toBe(0);
  });

  test('is not asked for that vote where a majority does not confirm the lock', async () => {
    const hold = await narrowlyAcquired();
    await strangerGoes();
    await stores.quorum.at(0).client.del(LOCK);
    expect(await store.renew([hold])).toEqual([false]);
    // A command that was sent before is answered before.
    expect(await store.inspect('k')).toBeNull();
    expect(await ownersAt([3, 4])).toEqual([null, null]);
  });
});

describe('a done mark', () => {
  test('is left by a release at the servers that have not answered, and at no others', async () => {
    const { client } = stores.quorum.at(4);
    await client.client('PAUSE', 60_000, 'WRITE');
    const hold = await acquired(store, 'k', TTL_MS);
    // A majority grants; the reply of the fourth server is a moment behind.
    await until('the votes', async () => (await ownersAt([0, 1, 2, 3])).every((owner) => owner !== null));
    await sleep(500);
    await sleep(500);
    await expect(store.release({ ...hold, unanswered: false })).resolves.toBe(true);
    const marks = (place: number): Promise<string[]> => stores.quorum.at(place).client.keys('lock:done:*{k}');
    await client.client('UNPAUSE');
    await until('the release', async () => (await marks(4)).length === 1);
    expect(await Promise.all([0, 1, 2, 3].map(marks))).toEqual([[], [], [], []]);
    expect(await ownersAt([0, 1, 2, 3, 4])).toEqual([null, null, null, null, null]);
  });

  test('is left by the withdrawal of an attempt at a server that has not answered it, and at no other', async () => {
    const { client } = stores.quorum.at(0);
    await client.client('PAUSE', 60_000, 'WRITE');
    setMode(stores.quorum.proxies, [2, 3, 4], 'refuse');
    await expect(store.acquire({ ...newHold('k', TTL_MS, LIMIT_MS), unanswered: false })).rejects.toThrow();
    // By then nobody waits for the answer of that server any more.
    await sleep(LIMIT_MS + 1_000);
    await client.client('UNPAUSE');
    const marks = (place: number): Promise<string[]> => stores.quorum.at(place).client.keys('lock:done:*{k}');
    await until('the withdrawal', async () => (await marks(0)).length === 1, 10_000);
    expect(await marks(1)).toEqual([]);
    expect(await ownersAt([0, 1])).toEqual([null, null]);
  });

  test('is left at a server that was asked to let the hold in again, and has not answered', async () => {
    const hold = await acquired(store, 'k', TTL_MS);
    await until('the lock at all servers', () => isEverywhere(hold));
    const { client } = stores.quorum.at(4);
    await client.del(LOCK);
    // The renewal is answered by all; the vote that follows from it is carried out, and its reply is lost.
    const proxy = stores.quorum.proxies[4] as TcpProxy;
    proxy.ambush = [VOTE.sha, VOTE.source];
    expect(await store.renew([hold])).toEqual([true]);
    await until('the vote', async () => (await ownersAt([4]))[0] !== null);
    proxy.ambush = undefined;
    await stores.allVote(store);
    await expect(store.release({ ...hold, unanswered: false })).resolves.toBe(true);
    await until('the mark', async () => (await client.keys('lock:done:*{k}')).length === 1);
    await expect(ownersAt([4])).resolves.toEqual([null]);
  });
});

describe('a lock that a server has lost', () => {
  async function lostAt4(): Promise<HoldRecord> {
    const hold = await acquired(store, 'k', TTL_MS);
    await until('the lock at all servers', () => isEverywhere(hold));
    // The reply of the last one is a moment behind.
    await stores.allVote(store);
    await stores.quorum.at(4).client.del(LOCK);
    return { ...hold, unanswered: false };
  }

  test('is not voted for again once its release was sent, though a renewal that was sent before confirms it', async () => {
    for (let round = 0; round < 5; round++) {
      const hold = await lostAt4();
      expect(await Promise.all([store.renew([hold]), store.release(hold)])).toEqual([[true], true]);
      // Whatever followed from the answers has been sent by then, and is carried out in order.
      await sleep(300);
      expect(await ownersAt([0, 1, 2, 3, 4])).toEqual([null, null, null, null, null]);
    }
  });

  test('leaves a mark there where it is released while that server is about to be asked for its vote', async () => {
    const hold = await lostAt4();
    const { ask } = QuorumServer.prototype;
    let goOn = (): void => undefined;
    let isSettling = false;
    const going = new Promise<void>((resolve) => (goOn = resolve));
    const asked = jest.spyOn(QuorumServer.prototype, 'ask').mockImplementation(async function (this: QuorumServer, command, limitMs) {
      if (command.script.sha === SETTLE.sha) {
        isSettling = true;
        await going;
      }
      return ask.call(this, command, limitMs);
    });
    try {
      expect(await store.renew([hold])).toEqual([true]);
      await until('what comes before the vote', () => isSettling);
      expect(await store.release(hold)).toBe(true);
      await until('the mark', async () => (await stores.quorum.at(4).client.keys(`lock:done:${hold.id}:*`)).length === 1);
      goOn();
      await sleep(300);
      expect(await ownersAt([4])).toEqual([null]);
    } finally {
      goOn();
      asked.mockRestore();
    }
  });
});

describe('a vote that comes late', () => {
  test('is refused where the attempt was withdrawn', async () => {
    const again = await repeater(0, VOTE);
    setMode(stores.quorum.proxies, [2, 3, 4], 'refuse');
    await expect(store.acquire(newHold('k', TTL_MS))).rejects.toThrow();
    await until('the withdrawal', async () => (await stores.quorum.at(0).client.keys('lock:done:*{k}')).length > 0);
    expect(await again()).toEqual([0, '', 0, 0, expect.any(Number)]);
    expect(await ownersAt([0])).toEqual([null]);
  });

  test('is refused where the hold was released', async () => {
    const again = await repeater(0, VOTE);
    await store.release(await acquired(store, 'k', TTL_MS));
    await until('the release', async () => (await stores.quorum.at(0).client.keys('lock:done:*{k}')).length > 0);
    expect(await again()).toEqual([0, '', 0, 0, expect.any(Number)]);
    expect(await ownersAt([0])).toEqual([null]);
  });

  test('is refused by its time where no mark shows any more that it was given up', async () => {
    const again = await repeater(0, VOTE, false);
    const { client } = stores.quorum.at(0);
    await store.release(await acquired(store, 'k', TTL_MS, LIMIT_MS));
    const marks = async (): Promise<string[]> => client.keys('lock:done:*{k}');
    await until('the release', async () => (await marks()).length > 0);
    await client.del(await marks());
    // A second is added to the limit.
    await sleep(LIMIT_MS + 1_100);
    expect(await again()).toEqual([expect.any(Number)]);
    expect(await ownersAt([0])).toEqual([null]);
  });

  test('is refused where a later attempt has voted, although no mark shows that its own was withdrawn', async () => {
    const again = await repeater(0, VOTE);
    const { client } = stores.quorum.at(0);
    const holdsAt0 = async (): Promise<string[]> => (await client.hkeys(LOCK)).filter((field) => field.startsWith('hold:'));
    const hold = newHold('k', TTL_MS);
    await store.acquire(hold);
    await until('the first vote', async () => (await holdsAt0()).length === 1);
    const first = await holdsAt0();
    await store.acquire(hold);
    await until('the second vote', async () => (await holdsAt0())[0] !== first[0]);
    const second = await holdsAt0();
    expect(await again()).toEqual([0, '', 0, 0, expect.any(Number)]);
    expect(await holdsAt0()).toEqual(second);
    expect(second).toHaveLength(1);
  });

  test('is at most an orphan on one server, which grants nothing and keeps no other owner out', async () => {
    setMode(stores.quorum.proxies, [3, 4], 'refuse');
    // A vote is refused a second after its limit, for which the machine may stand still.
    await until('the vote', async () => {
      setMode(stores.quorum.proxies, [2], 'pass');
      await until('a majority', async () => (await store.inspect('j').catch(() => undefined)) === null);
      stores.quorum.at(2).pause();
      const late = newHold('k', 2_000, LIMIT_MS);
      await expect(store.acquire(late)).rejects.toMatchObject({ unknown: true });
      setMode(stores.quorum.proxies, [2], 'refuse');
      stores.quorum.at(2).resume();
      const isThere = async (): Promise<boolean> => (await ownersAt([2]))[0] === late.owner;
      return until('it', isThere, 1_000).then(
        () => true,
        () => false,
      );
    });
    const next = await acquired(other, 'k', TTL_MS);
    await until('the end of the orphan', async () => (await ownersAt([2]))[0] === null);
    expect(await other.renew([next])).toEqual([true]);
  });

  test('with another fence is given that of the lock, so that it can be renewed', async () => {
    await stores.quorum.at(4).client.set('lock:fence:{0}', '8000000000000000');
    stores.quorum.proxy(4).latencyMs = 60;
    const hold = await acquired(store, 'k', TTL_MS);
    expect(hold.fence).toBeLessThan(8_000_000_000_000_000);
    await until('the fence of the lock', () => isEverywhere(hold));
    setMode(stores.quorum.proxies, [0, 1], 'refuse');
    await sleep(100);
    expect(await store.renew([hold])).toEqual([true]);
  });

  test('after its reply was no longer waited for is given the fence with a renewal', async () => {
    await stores.quorum.at(4).client.set('lock:fence:{0}', '8000000000000000');
    stores.quorum.proxy(4).latencyMs = LIMIT_MS + 200;
    const hold = await acquired(store, 'k', TTL_MS, LIMIT_MS);
    await until('the vote', async () => (await ownersAt([4]))[0] === hold.owner);
    await sleep(LIMIT_MS + 300);
    expect(await isEverywhere(hold)).toBe(false);
    stores.quorum.proxy(4).latencyMs = 0;
    await until('the fence of the lock', async () => {
      expect(await store.renew([hold])).toEqual([true]);
      return isEverywhere(hold);
    });
  });

  test('a fence that is settled late does not touch the lock of another owner', async () => {
    await Promise.all([0, 1, 2, 3].map((place) => stores.quorum.at(place).client.set('lock:fence:{0}', `800000000000000${place}`)));
    const again = await repeater(0, SETTLE);
    const hold = await acquired(store, 'k', TTL_MS);
    await until('the fence', () => isEverywhere(hold));
    expect(await again()).toBe(1);
    await store.release(hold);
    const next = await acquired(other, 'k', TTL_MS);
    await until('five votes', () => isEverywhere(next));
    expect(await again()).toBe(0);
    expect(await isEverywhere(next)).toBe(true);
  });
});

test('nothing is left behind but done marks, the fence and the run of each server', async () => {
  const locks = makeLocks(store, { ttl: 3_000 });
  await locks.withLock(['a', 'b'], async (lock) => {
    await makeLocks(other).withLock('a', { ticket: lock.makeTicket() }, () => sleep(1_100));
    await expect(makeLocks(other).acquire('b', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
  });
  await sleep(1_000);
  // Of the locks, and of the check of rights at the start.
  const ID = '([\\w-]{16}[0-9a-z]+-[\\w-]{6}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})';
  for (const { client } of stores.quorum.servers) {
    for (const name of await client.keys('*')) {
      expect(name).toMatch(new RegExp(`^lock:(fence:\\{0\\}|run:\\{0\\}|waiters:\\{.+\\}|done:${ID}(\\.\\d+)?:\\{.+\\})$`));
      const leftMs = await client.pttl(name);
      // A key that has expired since is gone.
      if (leftMs !== -2) {
        // 0 is what is left in the last millisecond, and -1 says that a key never expires.
        expect([name, leftMs >= 0]).toEqual([name, /^lock:(done|waiters):/.test(name)]);
      }
    }
  }
});
