import type { Shares } from '../../lib/core/seam/lock-store';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import type { QueuedPlace } from '../../lib/kit/key-state';
import { LockTable, type TableReply } from '../../lib/kit/lock-table';
import { CLAIM_MS, DONE_MS, MOST_HOLDS, MOST_SKIPPED } from '../../lib/kit/protocol';
import { placeEnd } from '../../lib/core/seam/shares';
import { newHold } from '../support/new-hold';

const TTL_MS = 5_000;
const START = 1_700_000_000_000;

let nowMs: number;
/** The places that were notified of their turn, and the forced releases. */
let sent: string[];
/** The processes that receive no message. */
let gone: Set<string>;
let table: LockTable;

beforeEach(() => {
  [nowMs, sent, gone] = [0, [], new Set()];
  table = new LockTable(
    { monotonic: () => nowMs, wall: () => START + nowMs },
    {
      turn: ({ name, process }) => {
        sent.push(name);
        return gone.has(process) ? 0 : 1;
      },
      forced: (process, key, fence) => sent.push(`forced ${process} out of ${key} at ${fence}`),
    },
  );
});

/** A caller: its hold, and the place at which it queues. */
interface Caller {
  readonly hold: HoldRecord;
  readonly place: QueuedPlace;
}

function callerOf(name: string, shares: Shares | undefined, changes: Partial<HoldRecord> = {}): Caller {
  const hold = newHold('k', { ttlMs: TTL_MS, shares, by: name, ...changes });
  return { hold, place: { name: `${name}${placeEnd(shares)}`, process: `process of ${name}`, polls: false } };
}

const reader = (name: string, changes?: Partial<HoldRecord>): Caller => callerOf(name, 'read', changes);
const writer = (name: string, changes?: Partial<HoldRecord>): Caller => callerOf(name, undefined, changes);
const permit = (name: string, count: number, changes?: Partial<HoldRecord>): Caller => callerOf(name, count, changes);

const ask = ({ hold, place }: Caller): TableReply => table.acquire(hold, place.process, place);

/** The caller with the fence of its grant. */
function enters(caller: Caller): Caller {
  const reply = ask(caller);
  expect(reply).toEqual({ fence: expect.any(Number) });
  return { ...caller, hold: { ...caller.hold, fence: reply.fence as number } };
}

/** The caller, which has to wait. */
function waits(caller: Caller): Caller {
  expect(ask(caller)).toMatchObject({ remainingMs: expect.any(Number), holder: expect.anything() });
  return caller;
}

const leaves = ({ hold }: Caller): boolean => table.release(hold);

describe('readers', () => {
  test('are in beside each other, at one fence', () => {
    const first = enters(reader('a'));
    nowMs = 100;
    expect(enters(reader('b')).hold.fence).toBe(first.hold.fence);
    expect(table.inspect('k')).toMatchObject({ holds: 2, fence: first.hold.fence, shares: 'read' });
  });

  test('keep their fence for as long as one of them is in, and those after them have one above', () => {
    const first = enters(reader('a'));
    const second = enters(reader('b'));
    leaves(first);
    const third = enters(reader('c'));
    expect(third.hold.fence).toBe(first.hold.fence);
    leaves(second);
    leaves(third);
    expect(enters(reader('d')).hold.fence).toBeGreaterThan(first.hold.fence);
  });

  test('have a fence above that of the writer before them, and below that of the writer after them', () => {
    const before = enters(writer('w', { fences: 16 }));
    leaves(before);
    const between = enters(reader('a'));
    expect(between.hold.fence).toBeGreaterThanOrEqual(before.hold.fence + 16);
    leaves(between);
    expect(enters(writer('x')).hold.fence).toBeGreaterThan(between.hold.fence);
  });

  test('are confirmed at the same fence when they ask again, for a whole lease from then on', () => {
    const first = enters(reader('a'));
    enters(reader('b'));
    nowMs = 3_000;
    expect(ask(first)).toEqual({ fence: first.hold.fence });
    expect(table.inspect('k')).toMatchObject({ holds: 2, remainingMs: TTL_MS });
  });

  test('wait for a writer that is in', () => {
    enters(writer('w'));
    nowMs = 1_000;
    expect(ask(reader('a'))).toEqual({ remainingMs: TTL_MS - 1_000, holder: { by: 'w', heldMs: 1_000 }, rank: 0, joined: true });
  });

  test('do not overtake a writer that queues', () => {
    enters(reader('a'));
    waits(writer('w'));
    expect(ask(reader('b'))).toMatchObject({ rank: 1, joined: true });
    expect(table.acquire(reader('c').hold, 'p')).toMatchObject({ rank: -1, joined: false });
  });

  test('are confirmed although a writer queues', () => {
    const first = enters(reader('a'));
    waits(writer('w'));
    expect(ask(first)).toEqual({ fence: first.hold.fence });
  });

  test('that queue after a writer are woken together, up to the next writer', () => {
    const first = enters(writer('w'));
    const [a, b] = [waits(reader('a')), waits(reader('b'))];
    const second = waits(writer('x'));
    const c = waits(reader('c'));
    leaves(first);
    expect(sent).toEqual(['aR', 'bR']);
    const { fence } = enters(b).hold;
    expect(enters(a).hold.fence).toBe(fence);
    leaves(a);
    expect(ask(second)).toMatchObject({ rank: 0 });
    leaves(b);
    expect(sent).toEqual(['aR', 'bR', 'x']);
    waits(c);
    leaves(enters(second));
    expect(sent).toEqual(['aR', 'bR', 'x', 'cR']);
  });

  test('find a lease of a writer that is over: whoever asks first, those before it have their room reserved', () => {
    enters(writer('w'));
    waits(reader('a'));
    const b = waits(reader('b'));
    nowMs = TTL_MS;
    enters(b);
    expect(sent).toContain('aR');
    expect(ask(writer('x'))).toMatchObject({ rank: 0 });
    enters(reader('a'));
  });

  test('beyond the most holds wait', () => {
    for (let count = 0; count < MOST_HOLDS; count++) {
      table.acquire(reader(`${count}`).hold, 'p');
    }
    const more = waits(reader('more'));
    leaves(reader('stranger'));
    expect(sent).toEqual([]);
    nowMs = TTL_MS;
    enters(more);
  });
});

describe('a writer', () => {
  test('waits for all readers, as long as the last lease, and has the key reserved when the last of them leaves', () => {
    const first = enters(reader('a'));
    nowMs = 1_000;
    const second = enters(reader('b'));
    const waiting = writer('w');
    expect(ask(waiting)).toEqual({ remainingMs: TTL_MS, holder: { by: 'a', heldMs: 1_000 }, rank: 0, joined: true });
    leaves(second);
    expect(sent).toEqual([]);
    leaves(first);
    expect(sent).toEqual(['w']);
    waits(reader('c'));
    expect(enters(waiting).hold.fence).toBeGreaterThan(first.hold.fence);
  });

  test('waits for room that is reserved for readers', () => {
    const before = enters(writer('w'));
    waits(reader('a'));
    leaves(before);
    expect(ask(writer('x'))).toMatchObject({ remainingMs: CLAIM_MS, rank: 0 });
    nowMs = CLAIM_MS;
    enters(writer('x'));
  });

  test('that gives up its place at the head lets the readers behind it in', () => {
    enters(reader('a'));
    const waiting = waits(writer('w'));
    const b = waits(reader('b'));
    waits(reader('c'));
    waits(writer('x'));
    table.leave('k', waiting.place.name);
    expect(sent).toEqual(['bR', 'cR']);
    enters(b);
  });

  test('that gives up its turn lets the readers behind it in', () => {
    const first = enters(reader('a'));
    const waiting = waits(writer('w'));
    waits(reader('b'));
    waits(reader('c'));
    leaves(first);
    table.leave('k', waiting.place.name);
    expect(sent).toEqual(['w', 'bR', 'cR']);
  });

  test('that is gone is skipped when its turn comes, and the readers behind it are woken', () => {
    gone.add('process of w');
    const first = enters(reader('a'));
    waits(writer('w'));
    waits(reader('b'));
    leaves(first);
    expect(sent).toEqual(['w', 'bR']);
  });

  test('whose lease is over lets readers in, and cannot renew it beside them', () => {
    const late = enters(writer('w'));
    nowMs = TTL_MS;
    const first = enters(reader('a'));
    expect(first.hold.fence).toBeGreaterThan(late.hold.fence);
    expect(table.renew(late.hold)).toBe(false);
    expect(leaves(late)).toBe(false);
    expect(table.inspect('k')).toMatchObject({ holds: 1, shares: 'read' });
  });

  test('exchanges its lock for the next writer of its process before readers that queue, where it may', () => {
    const first = enters(writer('w'));
    waits(reader('a'));
    const next = writer('x');
    expect(table.exchange(first.hold, next.hold, 'p', next.place, true)).toEqual({ released: true, reply: { fence: expect.any(Number) } });
    expect(sent).toEqual([]);
    const last = writer('y');
    expect(table.exchange(next.hold, last.hold, 'p', last.place, false)).toMatchObject({
      released: true,
      reply: { rank: 0, joined: true },
    });
    expect(sent).toEqual(['aR']);
  });
});

describe('permits', () => {
  test('are granted up to their count, and one that leaves makes room for one', () => {
    const first = enters(permit('a', 2));
    enters(permit('b', 2));
    const c = waits(permit('c', 2));
    waits(permit('d', 2));
    leaves(first);
    expect(sent).toEqual(['cP2']);
    waits(permit('d', 2));
    enters(c);
    expect(table.inspect('k')).toMatchObject({ holds: 2, shares: 2 });
  });

  test('that are all taken say how long it is until the first of them ends', () => {
    enters(permit('a', 2));
    nowMs = 1_000;
    enters(permit('b', 2));
    expect(ask(permit('c', 2))).toMatchObject({ remainingMs: TTL_MS - 1_000, holder: { by: 'a', heldMs: 1_000 } });
  });

  test('are as many as the smallest count of the newcomer and of those that are in: from 50 to 20', () => {
    const old = Array.from({ length: 20 }, (_, at) => enters(permit(`a${at}`, 50)));
    const newcomer = waits(permit('b', 20));
    waits(permit('c', 50));
    leaves(old[0] as Caller);
    enters(newcomer);
    expect(table.inspect('k')).toMatchObject({ holds: 20, shares: 20 });
    waits(permit('c', 50));
    leaves(old[1] as Caller);
    expect(sent).toEqual(['bP20', 'cP50']);
  });

  test('open as those of the smaller count leave: from 20 to 50', () => {
    const old = Array.from({ length: 20 }, (_, at) => enters(permit(`a${at}`, 20)));
    const waiting = Array.from({ length: 40 }, (_, at) => waits(permit(`b${at}`, 50)));
    for (const [at, caller] of old.slice(0, 19).entries()) {
      leaves(caller);
      enters(waiting[at] as Caller);
    }
    expect(sent).toHaveLength(19);
    leaves(old[19] as Caller);
    expect(sent).toHaveLength(40);
    waiting.slice(19).forEach((caller) => enters(caller));
    expect(table.inspect('k')).toMatchObject({ holds: 40, shares: 50 });
  });

  test('keep no count once nobody is in', () => {
    leaves(enters(permit('a', 1)));
    enters(permit('b', 3));
    enters(permit('c', 3));
    expect(table.inspect('k')).toMatchObject({ holds: 2, shares: 3 });
  });

  test('do not overtake one that queues, although there would be room', () => {
    enters(permit('a', 3));
    waits(permit('b', 1));
    expect(ask(permit('c', 3))).toMatchObject({ rank: 1 });
    table.leave('k', 'bP1');
    expect(sent).toEqual(['cP3']);
  });

  test('that are reserved are taken, and count with the count that their place asked for', () => {
    const first = enters(permit('a', 1));
    waits(permit('b', 2));
    leaves(first);
    expect(sent).toEqual(['bP2']);
    waits(permit('c', 1));
    expect(ask(permit('d', 2))).toMatchObject({ rank: 1 });
    table.leave('k', 'cP1');
    expect(sent).toEqual(['bP2', 'dP2']);
  });

  test('are woken as many as fit, one after the other', () => {
    const first = enters(permit('a', 1));
    ['b', 'c', 'd'].forEach((name) => waits(permit(name, 2)));
    leaves(first);
    expect(sent).toEqual(['bP2', 'cP2']);
  });

  test('of places that are gone go to those behind them', () => {
    gone.add('process of b');
    const first = enters(permit('a', 1));
    ['b', 'c', 'd'].forEach((name) => waits(permit(name, 2)));
    leaves(first);
    expect(sent).toEqual(['bP2', 'cP2', 'dP2']);
    enters(permit('c', 2));
    enters(permit('d', 2));
  });

  test('of more places that are gone than are skipped at once keep the newcomer who met them out', () => {
    const first = enters(permit('a', 1));
    for (let count = 0; count < 2 * MOST_SKIPPED; count++) {
      gone.add(`process of ${count}`);
      waits(permit(`${count}`, 1));
    }
    leaves(first);
    expect(sent).toHaveLength(MOST_SKIPPED);
    expect(table.acquire(permit('b', 1).hold, 'p')).toEqual({
      remainingMs: CLAIM_MS,
      holder: { by: '', heldMs: 0 },
      rank: -1,
      joined: false,
    });
    expect(sent).toHaveLength(2 * MOST_SKIPPED);
    enters(permit('c', 1));
  });
});

describe('a lease of a hold that shares its key', () => {
  test('ends by itself and makes room, and its late release makes no more', () => {
    const first = enters(permit('a', 2));
    nowMs = 1;
    enters(permit('b', 2));
    nowMs = TTL_MS;
    enters(permit('c', 2));
    waits(permit('d', 2));
    expect(leaves(first)).toBe(false);
    expect(sent).toEqual([]);
    expect(table.inspect('k')).toMatchObject({ holds: 2 });
    waits(permit('d', 2));
  });

  test('that runs keeps none in that is over', () => {
    const [first, second] = [enters(reader('a')), enters(reader('b'))];
    nowMs = 3_000;
    expect(table.renew(second.hold)).toBe(true);
    nowMs = TTL_MS;
    expect(table.inspect('k')).toMatchObject({ holds: 1, by: 'b', processes: ['process of b'] });
    expect(table.renew(first.hold)).toBe(false);
  });

  test('is renewed by itself, and no other with it', () => {
    const [first, second] = [enters(permit('a', 2)), enters(permit('b', 2))];
    nowMs = 3_000;
    expect(table.renew(first.hold)).toBe(true);
    expect(ask(permit('c', 2))).toMatchObject({ remainingMs: TTL_MS - 3_000 });
    nowMs = TTL_MS;
    expect(table.renew(second.hold)).toBe(false);
    expect(table.renew(first.hold)).toBe(true);
  });

  test('is not renewed at another fence, for another owner or hold, or after its release', () => {
    const { hold } = enters(reader('a'));
    enters(reader('b'));
    expect(table.renew({ ...hold, fence: hold.fence - 1 })).toBe(false);
    expect(table.renew({ ...hold, owner: 'other' })).toBe(false);
    expect(table.renew({ ...hold, id: 'other' })).toBe(false);
    expect(table.renew({ ...hold, shares: undefined })).toBe(false);
    expect(table.release(hold)).toBe(true);
    expect(table.renew(hold)).toBe(false);
    expect(table.inspect('k')).toMatchObject({ holds: 1 });
  });

  test('becomes shorter by a renewal that lingers, and by no other', () => {
    const first = enters(reader('a'));
    enters(reader('b', { ttlMs: 200 }));
    table.renew({ ...first.hold, ttlMs: 100 });
    expect(table.inspect('k')).toMatchObject({ remainingMs: TTL_MS });
    table.renew({ ...first.hold, ttlMs: 100, lingering: true });
    expect(table.inspect('k')).toMatchObject({ remainingMs: 200 });
  });

  test('does not become longer by a clock that was set back', () => {
    nowMs = 1_000_000;
    const first = enters(permit('a', 2));
    enters(permit('b', 2, { ttlMs: 2 * TTL_MS }));
    waits(permit('c', 2));
    leaves(first);
    nowMs = 0;
    const waiting = permit('d', 2);
    expect(ask(waiting)).toMatchObject({ remainingMs: CLAIM_MS });
    expect(table.inspect('k')).toMatchObject({ remainingMs: 2 * TTL_MS });
    nowMs = CLAIM_MS;
    enters(waiting);
  });
});

describe('room that is reserved', () => {
  test('is free again when nobody has claimed it for the claim window', () => {
    const first = enters(permit('a', 1));
    const [b, c] = [waits(permit('b', 1)), waits(permit('c', 1))];
    leaves(first);
    nowMs = CLAIM_MS - 1;
    expect(ask(c)).toMatchObject({ remainingMs: 1 });
    nowMs = CLAIM_MS;
    enters(c);
    expect(ask(b)).toMatchObject({ rank: 0, joined: true });
  });

  test('passes to the next when its place is given up', () => {
    const first = enters(permit('a', 1));
    waits(permit('b', 1));
    waits(permit('c', 1));
    leaves(first);
    table.leave('k', 'other');
    expect(sent).toEqual(['bP1']);
    table.leave('k', 'bP1');
    expect(sent).toEqual(['bP1', 'cP1']);
  });

  test('is claimed once: whoever has it is one, and not two', () => {
    const first = enters(permit('a', 2));
    const second = enters(permit('b', 2));
    const waiting = waits(permit('c', 2));
    leaves(first);
    enters(waiting);
    leaves(second);
    enters(permit('d', 2));
  });

  test('is nobody to inspect, join, renew, release or force', () => {
    const before = enters(writer('w'));
    const { hold } = waits(reader('a'));
    leaves(before);
    expect(table.inspect('k')).toBeNull();
    expect(table.search('')).toEqual([]);
    expect(table.join({ ...hold, id: 'guest' }, 'p')).toBe('ended');
    expect(table.renew(hold)).toBe(false);
    expect(table.release(newHold('k', { shares: 'read' }))).toBe(false);
    expect(table.forceRelease('k', 0)).toBe(false);
  });
});

describe('a forced release', () => {
  test('takes all holds out that share the key, tells each process once, and wakes those that wait', () => {
    const { fence } = enters(reader('a')).hold;
    enters(reader('b'));
    table.acquire(reader('c').hold, 'process of a');
    waits(writer('w'));
    expect(table.forceRelease('k', fence - 1)).toBe(false);
    expect(table.forceRelease('k', fence)).toBe(true);
    expect(sent).toEqual(['w', `forced process of a out of k at ${fence}`, `forced process of b out of k at ${fence}`]);
    expect(table.inspect('k')).toBeNull();
    expect(enters(writer('w')).hold.fence).toBeGreaterThan(fence);
  });

  test('of permits wakes as many as fit, beside those that have room reserved', () => {
    const first = enters(permit('a', 2));
    const { fence } = enters(permit('b', 2)).hold;
    ['c', 'd', 'e'].forEach((name) => waits(permit(name, 2)));
    leaves(first);
    expect(table.forceRelease('k', fence)).toBe(true);
    expect(sent).toEqual(['cP2', 'dP2', `forced process of b out of k at ${fence}`]);
  });
});

describe('the other kind of key', () => {
  test('is refused while somebody is in, and does not queue', () => {
    const first = enters(permit('a', 2));
    expect(ask(writer('w'))).toMatchObject({ otherKind: 'semaphore', rank: -1, joined: false });
    expect(ask(reader('b'))).toMatchObject({ otherKind: 'semaphore' });
    leaves(first);
    const second = enters(reader('b'));
    expect(ask(permit('a', 2))).toMatchObject({ otherKind: 'lock' });
    leaves(second);
    enters(writer('w'));
    expect(ask(permit('a', 2))).toMatchObject({ otherKind: 'lock' });
    expect(table.inspect('k')?.waiters).toEqual([]);
  });

  test('may have the key after the last of them', () => {
    enters(permit('a', 2));
    nowMs = TTL_MS;
    enters(writer('w'));
  });

  test('waits where room is only reserved', () => {
    const first = enters(permit('a', 1));
    const second = waits(permit('b', 1));
    leaves(first);
    const waiting = reader('c');
    expect(ask(waiting)).not.toHaveProperty('otherKind');
    enters(second);
    expect(ask(waiting)).toMatchObject({ otherKind: 'semaphore' });
  });
});

describe('a ticket of a reader', () => {
  test('lets a hold in beside those of its owner, at the same fence, although a writer queues', () => {
    const { hold } = enters(reader('a'));
    enters(reader('b'));
    waits(writer('w'));
    const guest = { ...hold, id: 'guest' };
    expect(table.join({ ...guest, owner: 'other' }, 'q')).toBe('ended');
    expect(table.join({ ...guest, fence: hold.fence + 1 }, 'q')).toBe('ended');
    expect(table.join({ ...guest, shares: undefined }, 'q')).toBe('ended');
    expect(table.join(guest, 'q')).toBe('joined');
    expect(table.inspect('k')).toMatchObject({ holds: 3, fence: hold.fence, processes: ['process of a', 'process of b', 'q'] });
  });

  test('gives a lease that is a lease of its own, and outlives the first', () => {
    const { hold } = enters(reader('a'));
    const guest = { ...hold, id: 'guest', ttlMs: 2 * TTL_MS };
    table.join(guest, 'q');
    nowMs = TTL_MS;
    expect(table.inspect('k')).toMatchObject({ holds: 1, remainingMs: TTL_MS });
    expect(table.join(guest, 'q')).toBe('joined');
    expect(table.inspect('k')).toMatchObject({ holds: 1, remainingMs: 2 * TTL_MS });
    expect(table.join({ ...hold, id: 'another' }, 'q')).toBe('joined');
    table.release(guest);
    table.release({ ...hold, id: 'another' });
    expect(table.join({ ...hold, id: 'late' }, 'q')).toBe('ended');
  });

  test('lets none in after its release, none that comes late, and none beyond the most holds', () => {
    const { hold } = enters(reader('a'));
    nowMs = 10;
    expect(table.join({ ...hold, id: 'guest' }, 'q', START + 9)).toBe('late');
    expect(table.join({ ...hold, id: 'guest' }, 'q', START + 10)).toBe('joined');
    table.release({ ...hold, id: 'guest' });
    expect(table.join({ ...hold, id: 'guest' }, 'q')).toBe('ended');
    for (let count = 1; count < MOST_HOLDS; count++) {
      expect(table.join({ ...hold, id: `${count}` }, 'q')).toBe('joined');
    }
    expect(table.join({ ...hold, id: 'one more' }, 'q')).toBe('full');
    expect(table.join({ ...hold, id: '1' }, 'q')).toBe('joined');
  });
});

describe('a release of a hold that shares its key', () => {
  test('is repeated with the first answer, and wakes nobody twice', () => {
    const first = enters(permit('a', 1));
    waits(permit('b', 1));
    waits(permit('c', 1));
    expect(leaves(first)).toBe(true);
    expect(leaves(first)).toBe(true);
    expect(sent).toEqual(['bP1']);
    nowMs = DONE_MS;
    expect(leaves(first)).toBe(false);
  });

  test('refuses an acquire of its hold that comes after it, until its mark is over', () => {
    const first = enters(reader('a'));
    enters(reader('b', { ttlMs: 2 * DONE_MS }));
    leaves(first);
    expect(ask(first)).toEqual({ remainingMs: 0, holder: { by: '', heldMs: 0 }, rank: -1, joined: false });
    nowMs = DONE_MS;
    enters(first);
  });

  test('knows it by owner and hold: another one takes nobody out', () => {
    const { hold } = enters(reader('a', { unanswered: false }));
    expect(table.release({ ...hold, owner: 'other' })).toBe(false);
    expect(table.release({ ...hold, id: 'other' })).toBe(false);
    expect(table.release({ ...hold, id: 'third', shares: undefined })).toBe(false);
    expect(table.inspect('k')).toMatchObject({ holds: 1 });
    expect(table.release({ ...hold, fence: 0 })).toBe(true);
  });

  test('of a permit leaves the room to those that queue, and not to a newcomer', () => {
    const first = enters(permit('a', 1));
    waits(permit('b', 1));
    leaves(first);
    waits(permit('c', 1));
    expect(table.inspect('k')).toBeNull();
  });
});

describe('a command that comes later than its sender waits for it', () => {
  test('lets no further hold in, and confirms one that is', () => {
    const first = enters(reader('a'));
    const second = reader('b');
    nowMs = 10;
    expect(table.acquire(second.hold, 'p', second.place, START + 9)).toMatchObject({ late: true, rank: -1, joined: false });
    expect(table.acquire(first.hold, 'p', first.place, START + 9)).toEqual({ fence: first.hold.fence });
    expect(table.inspect('k')).toMatchObject({ holds: 1, waiters: [] });
  });

  test('leaves the room that is reserved for it', () => {
    const first = enters(permit('a', 1));
    const second = waits(permit('b', 1));
    leaves(first);
    nowMs = 10;
    expect(table.acquire(second.hold, 'p', second.place, START + 9)).toMatchObject({ late: true });
    enters(second);
  });
});

describe('inspect', () => {
  test('tells of readers who was in first, the longest lease, all processes and all that wait', () => {
    enters(reader('a', { ttlMs: 2 * TTL_MS }));
    nowMs = 1_000;
    enters(reader('b'));
    waits(writer('w'));
    waits(reader('c'));
    expect(table.inspect('k')).toEqual({
      fence: START * 1_000,
      holds: 2,
      shares: 'read',
      remainingMs: 2 * TTL_MS - 1_000,
      since: new Date(START),
      by: 'a',
      waiters: ['process of w', 'process of c'],
      processes: ['process of a', 'process of b'],
    });
  });

  test('tells of a semaphore the smallest count, and what its first holder renewed as', () => {
    const { hold } = enters(permit('a', 5));
    enters(permit('b', 3));
    table.renew({ ...hold, by: '' });
    expect(table.inspect('k')).toMatchObject({ holds: 2, shares: 3, by: 'a' });
    table.renew({ ...hold, by: 'another' });
    expect(table.search('k')).toMatchObject([{ key: 'k', holds: 2, shares: 3, by: 'another' }]);
  });
});
