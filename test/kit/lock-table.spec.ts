import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import type { QueuedPlace } from '../../lib/kit/key-state';
import { LockTable, type TableReply } from '../../lib/kit/lock-table';
import { CLAIM_MS, DONE_MS, MOST_FENCE, MOST_HOLDS, MOST_SKIPPED, QUEUE_MS } from '../../lib/kit/protocol';
import { newHold } from '../support/new-hold';

const TTL_MS = 5_000;
const START = 1_700_000_000_000;

let nowMs: number;
let jumpedMs: number;
/** The messages that were sent: a turn as the name of its place, a forced release as key, process and fence. */
let sent: string[];
/** The processes that receive no message. */
let gone: Set<string>;
let table: LockTable;

const tableOf = (expires?: boolean): LockTable =>
  new LockTable(
    { monotonic: () => nowMs, wall: () => START + nowMs + jumpedMs },
    {
      turn: ({ name, process }) => {
        sent.push(`turn ${name}`);
        return gone.has(process) ? 0 : 1;
      },
      forced: (process, key, fence) => sent.push(`forced ${process} out of ${key} at ${fence}`),
    },
    expires,
  );

beforeEach(() => {
  [nowMs, jumpedMs, sent, gone] = [0, 0, [], new Set()];
  table = tableOf();
});

const holdOf = (changes: Partial<HoldRecord> = {}): HoldRecord => newHold('k', { ttlMs: TTL_MS, ...changes });
const placeOf = (name: string, polls = false): QueuedPlace => ({ name, process: `process of ${name}`, polls });

/** A hold that has the lock, at its fence. */
function granted(changes: Partial<HoldRecord> = {}, process = 'p'): HoldRecord {
  const hold = holdOf(changes);
  return { ...hold, fence: fenceOf(table.acquire(hold, process)) };
}

function fenceOf(reply: TableReply): number {
  expect(reply).toEqual({ fence: expect.any(Number) });
  return (reply as { fence: number }).fence;
}

/** A hold that queues, at a place of its own. */
function queued(name: string, polls = false): HoldRecord {
  const hold = holdOf();
  expect(table.acquire(hold, `process of ${name}`, placeOf(name, polls))).toMatchObject({ joined: true });
  return hold;
}

describe('a grant', () => {
  test('has a fence that is the time in microseconds, or above all that were granted', () => {
    const first = granted({ fences: 16 });
    expect(first.fence).toBe(START * 1_000);
    table.release(first);
    const second = granted();
    expect(second.fence).toBe(first.fence + 16);
    table.release(second);
    nowMs = 1;
    expect(granted().fence).toBe((START + 1) * 1_000);
  });

  test('is refused where its last fence would be too high to be told from others, and nothing is taken', () => {
    jumpedMs = MOST_FENCE / 1_000 - START;
    expect(() => table.acquire(holdOf({ fences: 1_000 }), 'p')).toThrow(expect.objectContaining({ code: 'LOCK_CONFIGURATION', key: 'k' }));
    expect(table.inspect('k')).toBeNull();
  });

  test('that reaches the highest fence is one', () => {
    jumpedMs = (MOST_FENCE - 991) / 1_000 - START;
    expect(granted({ fences: 992 }).fence).toBe(MOST_FENCE - 991);
    expect(() => table.acquire(newHold('other'), 'p')).toThrow(expect.objectContaining({ key: 'other' }));
  });

  test('is confirmed to its hold with the same fence, for a whole lease from then on', () => {
    const hold = granted();
    nowMs = 3_000;
    expect(table.acquire(hold, 'p')).toEqual({ fence: hold.fence });
    expect(table.inspect('k')).toMatchObject({ holds: 1, remainingMs: TTL_MS });
  });

  test('is confirmed neither to another hold of its owner nor to another owner of its hold', () => {
    const hold = granted({ by: 'Its.method' });
    nowMs = 1_000;
    const busy = { remainingMs: TTL_MS - 1_000, holder: { by: 'Its.method', heldMs: 1_000 }, rank: -1, joined: false };
    expect(table.acquire({ ...hold, id: 'other' }, 'p')).toEqual(busy);
    expect(table.acquire({ ...hold, owner: 'other' }, 'p')).toEqual(busy);
  });

  test('ends with its lease, in that very moment', () => {
    const hold = granted();
    nowMs = TTL_MS - 1;
    expect(table.inspect('k')).toMatchObject({ remainingMs: 1 });
    nowMs = TTL_MS;
    expect(table.inspect('k')).toBeNull();
    expect(table.renew(hold)).toBe(false);
    expect(granted().fence).toBeGreaterThan(hold.fence);
  });

  test('of a table that knows no expiry ends with its last hold only', () => {
    table = tableOf(false);
    const hold = granted();
    nowMs = 1_000 * TTL_MS;
    expect(table.acquire(holdOf(), 'p')).toMatchObject({ remainingMs: Infinity });
    expect(table.inspect('k')).toMatchObject({ remainingMs: Infinity });
    expect(table.release(hold)).toBe(true);
    expect(table.inspect('k')).toBeNull();
  });
});

describe('a command that comes later than its sender waits for it', () => {
  const LATE = { remainingMs: 0, holder: { by: '', heldMs: 0 }, rank: -1, joined: false, late: true };

  test('takes no free lock, and one that comes in its last moment does', () => {
    nowMs = 10;
    expect(table.acquire(holdOf(), 'p', placeOf('a'), START + 9)).toEqual(LATE);
    expect(table.inspect('k')).toBeNull();
    expect(table.acquire(holdOf(), 'p', undefined, START + 10)).toEqual({ fence: expect.any(Number) });
  });

  test('lets no further hold in, and confirms one that is', () => {
    const hold = granted();
    const guest = { ...hold, id: 'guest' };
    nowMs = 10;
    expect(table.join(guest, 'q', START + 9)).toBe('late');
    expect(table.inspect('k')).toMatchObject({ holds: 1 });
    expect(table.join(guest, 'q', START + 10)).toBe('joined');
    nowMs = 11;
    expect(table.join(guest, 'q', START + 10)).toBe('joined');
  });

  test('exchanges nothing: the lock is released to whoever queues', () => {
    const hold = granted();
    queued('a');
    nowMs = 10;
    expect(table.exchange(hold, holdOf(), 'p', placeOf('b'), true, START + 9)).toEqual({ released: true, reply: LATE });
    expect(sent).toEqual(['turn a']);
    expect(table.acquire(holdOf(), 'p')).toMatchObject({ holder: { by: 'process of a' } });
  });
});

describe('a join', () => {
  test('needs the owner, the fence and a lock that runs', () => {
    const hold = granted();
    const guest = { ...hold, id: 'guest' };
    expect(table.join({ ...guest, owner: 'other' }, 'q')).toBe('ended');
    expect(table.join({ ...guest, fence: hold.fence + 1 }, 'q')).toBe('ended');
    expect(table.join({ ...guest, key: 'other' }, 'q')).toBe('ended');
    expect(table.join(guest, 'q')).toBe('joined');
    expect(table.inspect('k')).toMatchObject({ holds: 2, processes: ['p', 'q'] });
  });

  test('of a hold that was released is refused, while another one is in', () => {
    const hold = granted();
    const guest = { ...hold, id: 'guest' };
    table.join(guest, 'q');
    expect(table.release(guest)).toBe(true);
    expect(table.join(guest, 'q')).toBe('ended');
  });

  test('lengthens the lease, and never shortens it', () => {
    const hold = granted();
    table.join({ ...hold, id: 'brief', ttlMs: 100 }, 'q');
    expect(table.inspect('k')).toMatchObject({ remainingMs: TTL_MS });
    table.join({ ...hold, id: 'long', ttlMs: 2 * TTL_MS }, 'q');
    expect(table.inspect('k')).toMatchObject({ remainingMs: 2 * TTL_MS });
  });

  test('beyond the most holds is refused, and one that is in is confirmed', () => {
    const hold = granted();
    for (let count = 1; count < MOST_HOLDS; count++) {
      expect(table.join({ ...hold, id: `${count}` }, 'q')).toBe('joined');
    }
    expect(table.join({ ...hold, id: 'one more' }, 'q')).toBe('full');
    expect(table.join({ ...hold, id: '1' }, 'q')).toBe('joined');
  });
});

describe('a renewal', () => {
  test('is for the hold, owner and fence of the grant', () => {
    const hold = granted();
    nowMs = 1_000;
    expect(table.renew({ ...hold, fence: hold.fence + 1 })).toBe(false);
    expect(table.renew({ ...hold, owner: 'other' })).toBe(false);
    expect(table.renew({ ...hold, id: 'other' })).toBe(false);
    expect(table.renew({ ...hold, key: 'other' })).toBe(false);
    expect(table.inspect('k')).toMatchObject({ remainingMs: TTL_MS - 1_000 });
    expect(table.renew(hold)).toBe(true);
    expect(table.inspect('k')).toMatchObject({ remainingMs: TTL_MS });
  });

  test('says who runs in the lock from then on, where it says so', () => {
    const hold = granted({ by: 'first' });
    table.renew({ ...hold, by: '' });
    expect(table.inspect('k')).toMatchObject({ by: 'first' });
    table.renew({ ...hold, by: 'second' });
    expect(table.inspect('k')).toMatchObject({ by: 'second' });
  });

  test('shortens the lease for a hold that lingers alone, and for no other', () => {
    const hold = granted();
    const guest = { ...hold, id: 'guest' };
    expect(table.renew({ ...hold, ttlMs: 100 })).toBe(true);
    table.join(guest, 'q');
    expect(table.renew({ ...guest, ttlMs: 100, lingering: true })).toBe(true);
    expect(table.inspect('k')).toMatchObject({ remainingMs: TTL_MS });
    table.release(hold);
    expect(table.renew({ ...guest, ttlMs: 100, lingering: true })).toBe(true);
    expect(table.inspect('k')).toMatchObject({ remainingMs: 100 });
  });
});

test('of a lock that is free and reserved nobody joins, renews, releases or forces anything', () => {
  const hold = granted();
  queued('a');
  table.release(hold);
  const other = { ...hold, id: 'other' };
  expect(table.join(other, 'q')).toBe('ended');
  expect(table.renew(other)).toBe(false);
  expect(table.release(other)).toBe(false);
  expect(table.forceRelease('k', hold.fence)).toBe(false);
  expect(sent).toEqual(['turn a']);
});

describe('a release', () => {
  test('answers a repetition as it did the first time, for as long as its mark stays, and takes nothing from the next owner', () => {
    const hold = granted();
    expect(table.release(hold)).toBe(true);
    const next = granted({ ttlMs: 2 * DONE_MS });
    queued('a');
    nowMs = DONE_MS - 1;
    expect(table.release(hold)).toBe(true);
    expect(table.inspect('k')).toMatchObject({ fence: next.fence, waiters: ['process of a'] });
    nowMs = DONE_MS;
    expect(table.release(hold)).toBe(false);
    expect(table.inspect('k')).toMatchObject({ fence: next.fence });
  });

  test('of a stranger, by the hold or by the owner, answers false and frees nothing', () => {
    const hold = granted();
    expect(table.release({ ...hold, owner: 'other' })).toBe(false);
    expect(table.release({ ...hold, id: 'other' })).toBe(false);
    expect(table.release(newHold('other'))).toBe(false);
    expect(table.inspect('k')).toMatchObject({ holds: 1 });
  });

  test('refuses an acquire of its hold that comes after it, until its mark is over', () => {
    const hold = granted();
    table.release(hold);
    nowMs = DONE_MS - 1;
    expect(table.acquire(hold, 'p', placeOf('a'))).toEqual({ remainingMs: 0, holder: { by: '', heldMs: 0 }, rank: -1, joined: false });
    expect(table.inspect('k')).toBeNull();
    nowMs = DONE_MS;
    expect(table.acquire(hold, 'p')).toEqual({ fence: expect.any(Number) });
  });

  test('keeps its mark whatever is released meanwhile, also where old marks are cleared', () => {
    const [first, second, third] = [holdOf(), holdOf(), holdOf()];
    table.release(first);
    nowMs = DONE_MS / 2;
    table.release(second);
    table.release(holdOf());
    table.release(holdOf());
    expect(table.acquire(first, 'p')).not.toHaveProperty('fence');
    nowMs = DONE_MS;
    table.release(third);
    nowMs = DONE_MS + 1;
    expect(table.acquire(second, 'p')).not.toHaveProperty('fence');
    expect(table.acquire(first, 'p')).toHaveProperty('fence');
  });

  test('of all but the last hold leaves the lock to the others', () => {
    const hold = granted();
    table.join({ ...hold, id: 'guest' }, 'q');
    queued('a');
    expect(table.release(hold)).toBe(true);
    expect(sent).toEqual([]);
    expect(table.inspect('k')).toMatchObject({ holds: 1, processes: ['q'], waiters: ['process of a'] });
    expect(table.release({ ...hold, id: 'guest' })).toBe(true);
    expect(sent).toEqual(['turn a']);
  });
});

describe('a queue', () => {
  test('says the rank of each place, and whether it is new there', () => {
    granted();
    const hold = queued('a');
    queued('b');
    expect(table.acquire(holdOf(), 'r', placeOf('c'))).toMatchObject({ rank: 2, joined: true });
    expect(table.acquire(hold, 'p', placeOf('a'))).toMatchObject({ rank: 0, joined: false });
    expect(table.inspect('k')?.waiters).toEqual(['process of a', 'process of b', 'process of c']);
  });

  test('is served first come, first served, and each turn is for its place alone', () => {
    const hold = granted();
    const [first, second] = [queued('a'), queued('b')];
    table.release(hold);
    expect(sent).toEqual(['turn a']);
    expect(table.acquire(second, 'p', placeOf('b'))).toMatchObject({
      remainingMs: CLAIM_MS,
      holder: { by: 'process of a', heldMs: 0 },
      rank: 0,
      joined: false,
    });
    expect(table.acquire(holdOf(), 'p')).toMatchObject({ remainingMs: CLAIM_MS, rank: -1 });
    fenceOf(table.acquire(first, 'p', placeOf('a')));
    table.release(first);
    expect(sent).toEqual(['turn a', 'turn b']);
    fenceOf(table.acquire(second, 'p', placeOf('b')));
    expect(table.inspect('k')?.waiters).toEqual([]);
  });

  test('passes a turn on that nobody claims for the claim window', () => {
    const hold = granted();
    queued('a');
    const second = queued('b');
    table.release(hold);
    nowMs = CLAIM_MS - 1;
    expect(table.acquire(second, 'p', placeOf('b'))).toMatchObject({ remainingMs: 1 });
    nowMs = CLAIM_MS;
    fenceOf(table.acquire(second, 'p', placeOf('b')));
  });

  test('hands a lock that it finds free to the first in it, and not to a newcomer', () => {
    granted();
    queued('a');
    nowMs = TTL_MS;
    expect(table.acquire(holdOf(), 'p', placeOf('b'))).toMatchObject({ holder: { by: 'process of a' }, rank: 0, joined: true });
    expect(sent).toEqual(['turn a']);
  });

  test('gives a lock that has become free to the first that asks for itself, without a message', () => {
    granted();
    const first = queued('a');
    queued('b');
    nowMs = TTL_MS;
    fenceOf(table.acquire(first, 'p', placeOf('a')));
    expect(sent).toEqual([]);
    expect(table.inspect('k')?.waiters).toEqual(['process of b']);
  });

  test('skips those that are gone, and none that polls or asks itself', () => {
    gone.add('process of a').add('process of b').add('process of c');
    const hold = granted();
    queued('a');
    queued('b', true);
    table.release(hold);
    expect(sent).toEqual(['turn a', 'turn b']);
    expect(table.acquire(holdOf(), 'p')).toMatchObject({ holder: { by: 'process of b' } });
    table.leave('k', 'b');
    granted();
    queued('a');
    const asking = queued('c');
    queued('d');
    nowMs = TTL_MS;
    fenceOf(table.acquire(asking, 'p', placeOf('c')));
  });

  test('of nobody but such that are gone leaves the lock free', () => {
    gone.add('process of a');
    const hold = granted();
    queued('a');
    table.release(hold);
    fenceOf(table.acquire(holdOf(), 'p'));
  });

  test('of nobody but such that are gone keeps no newcomer from a lock whose lease has ended', () => {
    gone.add('process of a');
    granted();
    queued('a');
    nowMs = TTL_MS;
    fenceOf(table.acquire(holdOf(), 'p'));
  });

  test('of more that are gone than are skipped at once keeps the rest, and a newcomer waits behind them', () => {
    const hold = granted();
    for (let count = 0; count <= MOST_SKIPPED; count++) {
      gone.add(`process of ${count}`);
      queued(`${count}`);
    }
    queued('alive');
    table.release(hold);
    expect(sent).toHaveLength(MOST_SKIPPED);
    expect(table.acquire(holdOf(), 'p')).toMatchObject({ holder: { by: 'process of alive' } });
  });

  test('of so many that are gone refuses the newcomer who met them, for a claim window', () => {
    const hold = granted();
    for (let count = 0; count < 2 * MOST_SKIPPED; count++) {
      gone.add(`process of ${count}`);
      queued(`${count}`);
    }
    table.release(hold);
    expect(table.acquire(holdOf(), 'p')).toEqual({ remainingMs: CLAIM_MS, holder: { by: '', heldMs: 0 }, rank: -1, joined: false });
    fenceOf(table.acquire(holdOf(), 'p'));
  });

  test('that no acquire refreshes is over after its time, and each acquire refreshes it', () => {
    granted({ ttlMs: 10 * QUEUE_MS });
    const hold = queued('a');
    nowMs = QUEUE_MS - 1;
    table.acquire(hold, 'p', placeOf('a'));
    nowMs = 2 * QUEUE_MS - 2;
    expect(table.inspect('k')?.waiters).toEqual(['process of a']);
    nowMs = 2 * QUEUE_MS - 1;
    expect(table.inspect('k')?.waiters).toEqual([]);
  });
});

describe('a place that is given up', () => {
  test('is no longer in the queue, and no turn comes to it', () => {
    const hold = granted();
    queued('a');
    queued('b');
    table.leave('k', 'other');
    table.leave('k', 'a');
    expect(table.inspect('k')?.waiters).toEqual(['process of b']);
    table.release(hold);
    expect(sent).toEqual(['turn b']);
  });

  test('passes on the turn that came to it, and no turn of another place', () => {
    const hold = granted();
    queued('a');
    queued('b');
    table.release(hold);
    table.leave('k', 'other');
    expect(sent).toEqual(['turn a']);
    table.leave('k', 'a');
    expect(sent).toEqual(['turn a', 'turn b']);
  });

  test('while it is queued anew keeps the turn of the same name', () => {
    const hold = granted();
    queued('a');
    table.release(hold);
    table.acquire(holdOf(), 'p', placeOf('b'));
    table.leave('k', 'b');
    expect(table.acquire(holdOf(), 'p')).toMatchObject({ holder: { by: 'process of a' } });
    table.leave('unknown', 'a');
  });
});

describe('an exchange', () => {
  test('gives the lock to the next caller before those in the queue, where it may', () => {
    const hold = granted();
    queued('a');
    const next = holdOf();
    const { released, reply } = table.exchange(hold, next, 'p', placeOf('b'), true);
    expect(released).toBe(true);
    expect(fenceOf(reply)).toBeGreaterThan(hold.fence);
    expect(sent).toEqual([]);
    expect(table.inspect('k')).toMatchObject({ holds: 1, waiters: ['process of a'] });
  });

  test('queues the next caller behind the others, where it may not', () => {
    const hold = granted();
    queued('a');
    const { released, reply } = table.exchange(hold, holdOf(), 'p', placeOf('b'), false);
    expect(released).toBe(true);
    expect(reply).toMatchObject({ rank: 0, joined: true, holder: { by: 'process of a' } });
    expect(sent).toEqual(['turn a']);
  });

  test('of a hold that is not the last queues the next caller', () => {
    const hold = granted();
    table.join({ ...hold, id: 'guest' }, 'q');
    queued('a');
    const { released, reply } = table.exchange(hold, holdOf(), 'p', placeOf('b'), true);
    expect(released).toBe(true);
    expect(reply).toMatchObject({ rank: 1, joined: true });
    expect(table.inspect('k')).toMatchObject({ holds: 1, processes: ['q'] });
    expect(sent).toEqual([]);
  });

  test('for a caller that was released already hands the lock over', () => {
    const hold = granted();
    queued('a');
    const next = holdOf();
    table.release(next);
    const { released, reply } = table.exchange(hold, next, 'p', placeOf('b'), true);
    expect(released).toBe(true);
    expect(reply).not.toHaveProperty('fence');
    expect(sent).toEqual(['turn a']);
  });

  test('that is repeated gives the same answer again', () => {
    const hold = granted();
    const next = holdOf();
    const first = table.exchange(hold, next, 'p', placeOf('b'), true);
    expect(table.exchange(hold, next, 'p', placeOf('b'), true)).toEqual(first);
  });
});

describe('an operator', () => {
  test('frees a lock at the fence that inspect showed, for all processes in it, each told once', () => {
    const hold = granted();
    table.join({ ...hold, id: 'guest' }, 'q');
    table.join({ ...hold, id: 'second guest' }, 'q');
    queued('a');
    expect(table.forceRelease('k', hold.fence - 1)).toBe(false);
    expect(table.forceRelease('other', hold.fence)).toBe(false);
    expect(table.inspect('k')).toMatchObject({ holds: 3 });
    expect(table.forceRelease('k', hold.fence)).toBe(true);
    expect(sent).toEqual(['turn a', `forced p out of k at ${hold.fence}`, `forced q out of k at ${hold.fence}`]);
    expect(table.inspect('k')).toBeNull();
    expect(table.renew(hold)).toBe(false);
  });

  test('finds the locks that are held, by how their keys begin', () => {
    table.acquire(newHold('a:1', { by: 'someone' }), 'p');
    table.acquire(newHold('a:2', { ttlMs: 1 }), 'p');
    table.acquire(newHold('b:1'), 'p');
    nowMs = 1;
    expect(table.search('a:')).toEqual([expect.objectContaining({ key: 'a:1', by: 'someone', since: new Date(START) })]);
    expect(table.search('')).toHaveLength(2);
  });

  test('that clears the table leaves neither locks nor marks', () => {
    const [hold, kept] = [granted(), newHold('other')];
    table.release(hold);
    table.acquire(kept, 'p');
    table.clear();
    expect(table.search('')).toEqual([]);
    expect(table.acquire(hold, 'p')).toHaveProperty('fence');
  });
});

describe('a clock that was set back', () => {
  test('makes no lease longer than the longest that was asked for, as soon as somebody wants the lock', () => {
    nowMs = 100_000;
    const hold = granted();
    table.renew({ ...hold, ttlMs: 2 * TTL_MS });
    nowMs = 0;
    expect(table.acquire(holdOf(), 'p')).toMatchObject({ remainingMs: 2 * TTL_MS });
    nowMs = 2 * TTL_MS;
    expect(table.inspect('k')).toBeNull();
  });

  test('makes no turn longer than the claim window', () => {
    nowMs = 100_000;
    const hold = granted();
    queued('a');
    const second = queued('b');
    table.release(hold);
    nowMs = 0;
    expect(table.acquire(second, 'p', placeOf('b'))).toMatchObject({ remainingMs: CLAIM_MS });
    nowMs = CLAIM_MS;
    fenceOf(table.acquire(second, 'p', placeOf('b')));
  });
});

test('keeps nothing of keys that nobody wants any more, nor of marks that are over', () => {
  const play = (times: number): void => {
    for (let time = 0; time < times; time++) {
      nowMs += DONE_MS / 100;
      const hold = newHold(`key ${nowMs}`);
      table.acquire(hold, 'p');
      table.release(hold);
    }
  };
  play(1_000);
  const before = heapUsed();
  play(30_000);
  // An empty record of each key would be 15 MB, and a mark of each hold 5.
  expect(heapUsed() - before).toBeLessThan(2_000_000);
});

function heapUsed(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}
