import { readFileSync } from 'node:fs';
import type { Evidence, Finding } from './checks/check';
import { checkCalls } from './checks/calls';
import { checkConnections } from './checks/connections';
import { checkFences } from './checks/fences';
import { checkHonesty } from './checks/honesty';
import { checkLeaders } from './checks/leaders';
import { checkLiveness, hasLongerLease } from './checks/liveness';
import { checkOrder } from './checks/order';
import { checkOverlap } from './checks/overlap';
import { checkPermits } from './checks/permits';
import { checkRegisters, controlOf } from './checks/registers';
import { checkTickets } from './checks/tickets';
import { entriesOf } from './entry';
import type { HistoryEvent } from './event';
import { weaknessesOf } from './weakness';
import { checkProcesses } from './checks/processes';
import { FAULTS, type FaultName } from './faults';
import { MUTANTS } from './mutants';
import { planFaults } from './plan';
import { Faults } from './struck';

const LEASE_MS = 1_000;

interface Call {
  readonly process?: string;
  readonly owner?: string;
  readonly op?: 'acquire' | 'enter';
  readonly asked: number;
  readonly entered?: number;
  readonly left?: number;
  readonly trusted?: number;
  readonly fence?: number;
  readonly outcome?: string;
  readonly waitMs?: number;
  readonly isFixed?: boolean;
  readonly shares?: 'read' | number;
}

let calls = 0;

/** The events of one call on the key `k`. */
function call({
  process = 'w1.1',
  owner,
  op = 'acquire',
  asked,
  entered,
  left,
  trusted,
  fence = ++calls,
  outcome = 'returned',
  waitMs,
  isFixed,
  shares,
}: Call): HistoryEvent[] {
  const subject = { process, key: 'k', owner: owner ?? `owner ${++calls}`, hold: `hold ${++calls}` };
  const events: HistoryEvent[] = [{ ...subject, op, phase: 'invoke', t: asked, waitMs, isFixed, shares }];
  if (entered !== undefined) {
    const told = typeof shares === 'number' ? undefined : fence;
    events.push({ ...subject, op, phase: 'ok', t: entered, fence: told, deadline: trusted ?? entered + LEASE_MS });
  }
  if (left !== undefined) {
    events.push({ ...subject, op: 'release', phase: 'invoke', t: left }, { ...subject, op: 'release', phase: 'ok', t: left + 1, outcome });
  } else if (entered === undefined) {
    events.push({ ...subject, op, phase: outcome.endsWith('unknown') ? 'info' : 'fail', t: trusted ?? asked + 1, outcome });
  }
  return events;
}

/** A fault of some servers only, or of the links to them. */
function partial(servers: readonly number[], ...of: Parameters<typeof fault>): HistoryEvent[] {
  return fault(...of).map((event) => (event.op === 'start' ? { ...event, servers } : event));
}

function fault(name: FaultName, target: string, from: number, to = from, taken: Partial<HistoryEvent> = {}): HistoryEvent[] {
  const subject = { process: 'nemesis', phase: 'info', fault: name, target } as const;
  return [
    { ...subject, op: 'start', t: from },
    { ...subject, op: 'stop', t: to, ...taken },
  ];
}

function evidenceOf(...events: HistoryEvent[][]): Evidence {
  return evidenceWith(0, ...events);
}

/** Of a run in which so many servers may be away with nobody hindered. */
function evidenceWith(spare: number, ...events: HistoryEvent[][]): Evidence {
  const history = events.flat().toSorted((first, second) => first.t - second.t);
  return {
    history,
    entries: entriesOf(history),
    faults: new Faults(history, spare),
    leaseMs: LEASE_MS,
    keepsOrder: true,
    keys: ['k'],
    registers: new Map(),
    leftovers: [],
    failures: [],
  };
}

function texts({ violations }: Finding): string[] {
  return violations.map(({ text }) => text);
}

const first = { asked: 0, entered: 10, left: 100, fence: 5 };

describe('no overlap', () => {
  test('one after the other is fine, and so are two entries of one owner', () => {
    const shared = [
      call({ ...first, owner: 'o' }),
      call({ process: 'w2.1', owner: 'o', op: 'enter', asked: 20, entered: 30, left: 200, fence: 5 }),
    ];
    expect(texts(checkOverlap(evidenceOf(...shared, call({ asked: 50, entered: 201, left: 210 }))))).toEqual([]);
  });

  test('two owners that trust their leases at once are found', () => {
    const second = call({ process: 'w2.1', asked: 0, entered: 90, left: 200, fence: 6 });
    expect(texts(checkOverlap(evidenceOf(call(first), second)))).toEqual([
      expect.stringMatching(/two owners of "k" trusted .* for 10\.0 ms/),
    ]);
  });

  test('a lease that has ended is not trusted, nor one that is known to be lost, nor that of a killed process', () => {
    const late = call({ process: 'w2.1', asked: 0, entered: 90, left: 200, fence: 6 });
    const [invoke, ok] = call(first) as [HistoryEvent, HistoryEvent];
    expect(texts(checkOverlap(evidenceOf(call({ ...first, trusted: 80 }), late)))).toEqual([]);
    expect(texts(checkOverlap(evidenceOf([invoke, ok, { ...ok, op: 'lost', phase: 'info', t: 85 }], late)))).toEqual([]);
    expect(texts(checkOverlap(evidenceOf([invoke, ok], late, fault('crash', 'w1', 70, 90))))).toEqual([]);
  });

  test('a forced release excuses it, for a renewal interval and no longer', () => {
    const second = call({ process: 'w2.1', asked: 0, entered: 90, left: 5_000, trusted: 6_000, fence: 6 });
    const forced = fault('force', 'k', 85);
    expect(texts(checkOverlap(evidenceOf(call(first), second, forced)))).toEqual([]);
    expect(texts(checkOverlap(evidenceOf(call({ ...first, left: 2_000, trusted: 3_000 }), second, forced)))).toHaveLength(1);
    expect(texts(checkOverlap(evidenceOf(call(first), second, fault('force', 'another', 85))))).toHaveLength(1);
  });

  test('a forced release that took another lock, or none, or that came before a renewal, excuses nothing', () => {
    const second = call({ process: 'w2.1', asked: 0, entered: 90, left: 5_000, trusted: 6_000, fence: 6 });
    const forced = (taken: Partial<HistoryEvent>): Evidence => evidenceOf(call(first), second, fault('force', 'k', 85, 86, taken));
    expect(texts(checkOverlap(forced({ fence: 5 })))).toEqual([]);
    expect(texts(checkOverlap(forced({ fence: 6 })))).toHaveLength(1);
    expect(texts(checkOverlap(forced({ outcome: 'nothing' })))).toHaveLength(1);
    const renewed = call({ ...first, trusted: 87 + LEASE_MS });
    expect(texts(checkOverlap(evidenceOf(renewed, second, fault('force', 'k', 85, 86))))).toHaveLength(1);
  });

  test('a machine that slept was granted its lease earlier by as much as it slept, and by no more', () => {
    const second = call({ process: 'w2.1', asked: 0, entered: 90, left: 5_000, trusted: 6_000, fence: 6 });
    const sleeper = call({ ...first, left: 500, trusted: 87 + LEASE_MS });
    const slept = (since: number, t: number): HistoryEvent[] => [{ process: 'w1.1', op: 'slept', phase: 'info', since, t }];
    const judged = (...sleeps: HistoryEvent[][]): string[] =>
      texts(checkOverlap(evidenceOf(sleeper, second, fault('force', 'k', 85, 86), fault('sleep', 'w1', 20, 450), ...sleeps)));
    expect(judged()).toHaveLength(1);
    expect(judged(slept(88, 450))).toEqual([]);
    expect(judged(slept(450, 451))).toEqual([]);
    expect(judged(slept(600, 900))).toHaveLength(1);
  });

  test('being kept from the servers excuses nothing by itself', () => {
    const second = call({ process: 'w2.1', asked: 0, entered: 90, left: 200, fence: 6 });
    expect(texts(checkOverlap(evidenceOf(call(first), second, fault('blackhole', 'w1', 20, 120))))).toHaveLength(1);
  });
});

describe('fences rise', () => {
  test("a fence that does not, that comes twice, or that is not its holder's, is found", () => {
    const later = { process: 'w2.1', asked: 200, entered: 210, left: 220 };
    expect(texts(checkFences(evidenceOf(call(first), call({ ...later, fence: 6 }))))).toEqual([]);
    expect(texts(checkFences(evidenceOf(call(first), call({ ...later, fence: 4 }))))).toEqual(['fence 4 of "k" came after 5']);
    expect(texts(checkFences(evidenceOf(call(first), call({ ...later, fence: 5 }))))).toContain('fence 5 of "k" was given twice');
    const entry = call({ process: 'w2.1', owner: 'o', op: 'enter', asked: 20, entered: 30, left: 90, fence: 6 });
    expect(texts(checkFences(evidenceOf(call({ ...first, owner: 'o' }), entry)))).toEqual([expect.stringMatching(/entered at fence 6/)]);
  });
});

describe('readers', () => {
  const reader = (more: Partial<Call>): HistoryEvent[] => call({ ...first, shares: 'read', ...more });
  const writer = (more: Partial<Call>): HistoryEvent[] => call({ process: 'w2.1', asked: 0, entered: 90, left: 200, fence: 6, ...more });
  const read = (evidence: Evidence): string[] => [...texts(checkOverlap(evidence)), ...texts(checkFences(evidence))];

  test('are in a key together at one fence, and one after the other at a higher one', () => {
    const beside = reader({ process: 'w2.1', asked: 20, entered: 30, left: 300 });
    const later = reader({ process: 'w2.1', asked: 400, entered: 410, left: 500, fence: 7 });
    const written = writer({ asked: 20, entered: 310, left: 320 });
    expect(read(evidenceOf(reader({}), beside, written, later))).toEqual([]);
  });

  test('beside a writer are found, whichever of them came first', () => {
    expect(read(evidenceOf(reader({}), writer({})))).toEqual([expect.stringMatching(/w1.1, which reads, at fence 5 and w2.1 at fence 6/)]);
    expect(read(evidenceOf(writer({ entered: 10, fence: 4 }), reader({ entered: 90 })))).toHaveLength(1);
    expect(read(evidenceOf(reader({}), writer({}), fault('force', 'k', 85)))).toEqual([]);
    expect(read(evidenceOf(reader({ trusted: 80 }), writer({})))).toEqual([]);
  });

  test('that are in together at two fences are found', () => {
    const beside = reader({ process: 'w2.1', asked: 0, entered: 90, left: 300, fence: 6 });
    expect(read(evidenceOf(reader({}), beside))).toEqual(['two readers of "k" were in at once, at fences 5 and 6']);
    expect(read(evidenceOf(reader({}), beside, fault('flush', 'servers', 85)))).toEqual([]);
  });

  test('with the fence of a writer, with a lower one than those before, or above a later writer are found', () => {
    const written = { asked: 200, entered: 210, left: 220 };
    expect(read(evidenceOf(reader({}), writer({ ...written, fence: 5 })))).toContain('fence 5 of "k" was given twice');
    expect(read(evidenceOf(reader({}), writer({ ...written, fence: 4 })))).toEqual(['fence 4 of "k" came after 5']);
    expect(read(evidenceOf(writer({ entered: 10, left: 90, fence: 6 }), reader({ asked: 200, entered: 210, left: 220 })))).toEqual([
      'fence 5 of "k" came after 6',
    ]);
    expect(read(evidenceOf(reader({}), reader({ process: 'w2.1', asked: 200, entered: 210, left: 220, fence: 4 })))).toEqual([
      'fence 4 of "k" came after 5',
    ]);
  });

  test('that a writer overtook are notified', () => {
    const lost = reader({ left: 1_550, trusted: 1_540, outcome: 'LOCK_LOST expired' });
    const next = writer({ entered: 1_500, left: 1_600 });
    expect(texts(checkHonesty(evidenceOf(lost, next, fault('pause', 'w1', 100, 1_540))))).toEqual([]);
    expect(texts(checkHonesty(evidenceOf(reader({ left: 1_550 }), next, fault('pause', 'w1', 100, 1_540))))).toHaveLength(1);
    expect(
      texts(checkHonesty(evidenceOf(reader({ left: 1_550 }), reader({ process: 'w2.1', asked: 0, entered: 90, left: 2_000 })))),
    ).toEqual([]);
  });

  test('that wait while only readers are in, and nobody waits to write, are found', () => {
    const waiting = { process: 'w2.1', asked: 0, trusted: 6_000, outcome: 'LOCK_NOT_ACQUIRED busy' };
    const beside = reader({ left: 6_500 });
    expect(texts(checkLiveness(evidenceOf(call({ ...waiting, shares: 'read' }), beside)))).toEqual([
      expect.stringMatching(/waited for "k" while it was free for 6000 ms/),
    ]);
    expect(texts(checkLiveness(evidenceOf(call(waiting), beside)))).toEqual([]);
    const writes = call({ ...waiting, process: 'w3.1' });
    expect(texts(checkLiveness(evidenceOf(call({ ...waiting, shares: 'read' }), beside, writes)))).toEqual([]);
    const written = call({ ...first, left: 6_500 });
    expect(texts(checkLiveness(evidenceOf(call({ ...waiting, shares: 'read' }), written)))).toEqual([]);
  });

  test('that starve a writer are found, and a writer that lets those in together go first is not', () => {
    const waiting = call({ process: 'w2.1', asked: 0, entered: 3_000, left: 3_010, fence: 9 });
    const others = (count: number, shared = true): HistoryEvent[][] =>
      Array.from({ length: count }, (_, at) =>
        reader({ asked: 500 + 10 * at, entered: 505 + 10 * at, left: 530 + 10 * at, fence: shared ? 5 : 5 + at }),
      );
    expect(texts(checkOrder(evidenceOf(waiting, ...others(16))))).toEqual([]);
    expect(texts(checkOrder(evidenceOf(waiting, ...others(17))))).toEqual([expect.stringMatching(/had it 17 times first/)]);
    const reads = reader({ process: 'w2.1', asked: 0, entered: 3_000, left: 3_010, fence: 90 });
    expect(texts(checkOrder(evidenceOf(reads, ...others(40))))).toEqual([]);
    expect(texts(checkOrder(evidenceOf(reads, ...others(40, false))))).toEqual([expect.stringMatching(/had it 40 times first/)]);
  });

  test('share the lock of their process: a ticket of one enters it while another is in', () => {
    const holder = reader({ owner: 'o' });
    const guest = reader({ process: 'w2.1', owner: 'o', op: 'enter', asked: 200, entered: 210, left: 220 });
    expect(texts(checkTickets(evidenceOf(holder, guest)))).toEqual(['w2.1 entered "k" at fence 5 when its lock had ended']);
    expect(texts(checkTickets(evidenceOf(holder, guest, reader({ asked: 20, entered: 30, left: 300 }))))).toEqual([]);
    expect(texts(checkTickets(evidenceOf(holder, guest, reader({ process: 'w3.1', asked: 20, entered: 30, left: 300 }))))).toHaveLength(1);
    // A guest of the other one keeps the lock of both.
    const other = reader({ owner: 'p', asked: 20, entered: 30, left: 100 });
    const itsGuest = reader({ process: 'w3.1', owner: 'p', op: 'enter', asked: 60, entered: 70, left: 300 });
    expect(texts(checkTickets(evidenceOf(holder, guest, other)))).toHaveLength(1);
    expect(texts(checkTickets(evidenceOf(holder, guest, other, itsGuest)))).toEqual([]);
  });
});

describe('no permit too many', () => {
  const permit = (shares: number, entered: number, left: number, more: Partial<Call> = {}): HistoryEvent[] =>
    call({ asked: 0, entered, left, shares, ...more });
  const two = [permit(2, 10, 500), permit(2, 20, 500, { process: 'w2.1' })];
  const third = permit(2, 30, 500, { process: 'w3.1' });
  const judged = (...events: HistoryEvent[][]): string[] => texts(checkPermits(evidenceOf(...events)));

  test('as many as there are is fine, and one more is found', () => {
    expect(judged(...two)).toEqual([]);
    expect(judged(...two, permit(2, 501, 600))).toEqual([]);
    expect(judged(...two, third)).toEqual(['3 permits of "k" were trusted at once, and one of them is of 2']);
    expect(checkPermits(evidenceOf(...two)).seen).toBe('2 permits, which filled their semaphore 1 times');
  });

  test('the smallest count of those that are in counts, be it that of the last or of another one', () => {
    const five = [10, 20, 30].map((entered) => permit(5, entered, 500));
    expect(judged(...five)).toEqual([]);
    expect(judged(...five, permit(3, 40, 500))).toEqual([expect.stringMatching(/^4 permits .* one of them is of 3/)]);
    expect(judged(permit(3, 5, 500), ...five)).toHaveLength(1);
    // One of a small count that has left counts no more.
    expect(judged(permit(3, 5, 25), ...five)).toEqual([]);
  });

  test('one whose lease has ended leaves room, and its late release leaves none besides', () => {
    const over = permit(2, 10, 2_000, { trusted: 1_010 });
    const inTime = [permit(2, 900, 3_000, { trusted: 4_000 }), permit(2, 1_020, 3_000, { process: 'w2.1', trusted: 4_000 })];
    expect(judged(over, ...inTime)).toEqual([]);
    expect(judged(over, ...inTime, permit(2, 2_010, 2_100, { process: 'w3.1' }))).toEqual([expect.stringMatching(/^3 permits/)]);
  });

  test('a nested call takes no permit, and a permit that was taken by force leaves room', () => {
    const nested = permit(2, 15, 400, { owner: 'o', op: 'enter' });
    expect(judged(permit(2, 10, 500, { owner: 'o' }), nested, permit(2, 20, 500))).toEqual([]);
    expect(judged(...two, third, fault('force', 'k', 25, 26, { fence: 5 }))).toEqual([]);
    expect(judged(...two, third, fault('force', 'k', 25, 26, { outcome: 'nothing' }))).toHaveLength(1);
    expect(judged(...two, third, fault('force', 'another', 25, 26, { fence: 5 }))).toHaveLength(1);
  });

  test('has no fence: none is missed, and a loss needs a cause all the same', () => {
    expect(texts(checkFences(evidenceOf(...two)))).toEqual([]);
    const lost = permit(2, 10, 1_550, { trusted: 1_540, outcome: 'LOCK_LOST expired' });
    expect(texts(checkHonesty(evidenceOf(lost)))).toEqual([expect.stringMatching(/nothing caused it/)]);
    expect(texts(checkHonesty(evidenceOf(lost, fault('delete', 'k', 1_500, 1_501, { fence: 7 }))))).toEqual([]);
  });

  test('whoever waits while there is room is found', () => {
    const waiting = (shares: number): HistoryEvent[] =>
      call({ process: 'w3.1', asked: 0, trusted: 6_000, outcome: 'LOCK_NOT_ACQUIRED busy', shares });
    const inside = [permit(3, 10, 6_500), permit(3, 20, 6_500, { process: 'w2.1' })];
    expect(texts(checkLiveness(evidenceOf(...inside, waiting(3))))).toEqual([
      expect.stringMatching(/waited for "k" while there was room for/),
    ]);
    expect(texts(checkLiveness(evidenceOf(...inside, waiting(2))))).toEqual([]);
    // Whoever waits with a smaller count may be the first.
    expect(texts(checkLiveness(evidenceOf(...inside, waiting(3), waiting(2))))).toEqual([]);
    expect(texts(checkLiveness(evidenceOf(...inside, permit(3, 30, 6_500), waiting(3))))).toEqual([]);
  });

  test('turns are those of all permits: each serves a burst of calls', () => {
    const waiting = permit(2, 3_000, 3_010, { process: 'w2.1' });
    const others = (count: number): HistoryEvent[][] =>
      Array.from({ length: count }, (_, at) => permit(2, 505 + 10 * at, 509 + 10 * at, { asked: 500 + 10 * at }));
    expect(texts(checkOrder(evidenceOf(waiting, ...others(32))))).toEqual([]);
    expect(texts(checkOrder(evidenceOf(waiting, ...others(33))))).toEqual([expect.stringMatching(/had it 33 times first/)]);
  });
});

describe('fences of calls that a lease serves', () => {
  const newer = call({ process: 'w2.1', asked: 0, entered: 90, left: 200, fence: 6 });
  const served = { process: 'w1.1', asked: 95, entered: 100, left: 110, trusted: 80 + LEASE_MS, fence: 5 };

  test('are below that of the next owner for a moment after something took the lock away', () => {
    expect(texts(checkFences(evidenceOf(newer, call(served), fault('flush', 'servers', 85))))).toEqual([]);
    expect(texts(checkFences(evidenceOf(newer, call(served))))).toEqual(['fence 5 of "k" came after 6']);
    const late = call({ ...served, entered: 5_000, left: 5_010 });
    expect(texts(checkFences(evidenceOf(newer, late, fault('flush', 'servers', 85))))).toHaveLength(1);
  });

  test('are not, where the store granted after it', () => {
    const granted = call({ ...served, trusted: 96 + LEASE_MS });
    expect(texts(checkFences(evidenceOf(newer, granted, fault('flush', 'servers', 85))))).toHaveLength(1);
  });
});

describe('tickets enter running locks', () => {
  const holder = call({ ...first, owner: 'o' });
  const joined = { process: 'w2.1', owner: 'o', op: 'enter', fence: 5 } as const;

  test('an entry while somebody is in, or may be, is fine', () => {
    expect(texts(checkTickets(evidenceOf(holder, call({ ...joined, asked: 90, entered: 120, left: 130 }))))).toEqual([]);
    const late = call({ ...joined, asked: 200, entered: 210, left: 220 });
    expect(texts(checkTickets(evidenceOf(holder, late, fault('killOnRelease', 'w1', 90, 110))))).toEqual([]);
    const another = call({ ...joined, process: 'w3.1', asked: 50, entered: 60, left: 400 });
    expect(texts(checkTickets(evidenceOf(holder, another, late)))).toEqual([]);
  });

  test('an entry into a lock that had ended is found', () => {
    const late = call({ ...joined, asked: 200, entered: 210, left: 220 });
    expect(texts(checkTickets(evidenceOf(holder, late)))).toEqual(['w2.1 entered "k" at fence 5 when its lock had ended']);
    const nested = call({ ...joined, process: 'w1.1', asked: 200, entered: 210, left: 220 });
    expect(texts(checkTickets(evidenceOf(holder, nested)))).toEqual([]);
  });

  test('an entry at a fence below that of a later owner is found', () => {
    const later = call({ process: 'w3.1', asked: 110, entered: 120, left: 130, fence: 6 });
    const late = call({ ...joined, asked: 200, entered: 210, left: 220 });
    expect(texts(checkFences(evidenceOf(holder, later, late)))).toEqual(['fence 5 of "k" came after 6']);
    const inTime = call({ ...joined, asked: 90, entered: 210, left: 220 });
    expect(texts(checkFences(evidenceOf(holder, later, inTime)))).toEqual([]);
  });

  test('a ticket that is refused while its holder trusts the lock is found', () => {
    const refused = call({ ...joined, asked: 50, outcome: 'LOCK_LOST released' });
    expect(texts(checkTickets(evidenceOf(holder, refused)))).toEqual(['w2.1 was refused at "k", whose lock ran']);
    expect(texts(checkTickets(evidenceOf(holder, call({ ...joined, asked: 150, outcome: 'LOCK_LOST released' }))))).toEqual([]);
    expect(texts(checkTickets(evidenceOf(holder, refused, fault('delete', 'k', 30))))).toEqual([]);
    const lost = call({ ...first, owner: 'o', outcome: 'LOCK_LOST expired' });
    expect(texts(checkTickets(evidenceOf(lost, refused)))).toEqual([]);
  });
});

describe('registers', () => {
  const write = (phase: 'invoke' | 'ok' | 'fail', register: 'claimed' | 'plain', t: number): HistoryEvent => ({
    process: 'w1.1',
    op: 'write',
    key: 'k',
    phase,
    register,
    t,
  });

  test('an update that was written with a fence and is gone is found; one of a killed process may be or not', () => {
    const events = [write('invoke', 'claimed', 1), write('ok', 'claimed', 2), write('invoke', 'claimed', 3)];
    const holding = (claimed: number): Evidence => ({ ...evidenceOf(events), registers: new Map([['k', { claimed, plain: 0 }]]) });
    expect([0, 1, 2, 3].map((claimed) => texts(checkRegisters(holding(claimed))).length)).toEqual([1, 0, 0, 1]);
  });

  test('the control counts what was lost without a fence', () => {
    const events = [write('ok', 'plain', 1), write('ok', 'plain', 2)];
    expect(controlOf({ ...evidenceOf(events), registers: new Map([['k', { claimed: 0, plain: 1 }]]) })).toEqual({ lost: 1, of: 2 });
  });
});

describe('losses are notified', () => {
  const second = call({ process: 'w2.1', asked: 0, entered: 1_500, left: 1_600, fence: 6 });
  const overtaken = { ...first, left: 1_550 };

  test('whoever was overtaken and resolved is found, and whoever was notified is not', () => {
    const paused = fault('pause', 'w1', 100, 1_540);
    expect(texts(checkHonesty(evidenceOf(call(overtaken), second, paused)))).toEqual([expect.stringMatching(/which was not notified/)]);
    expect(texts(checkHonesty(evidenceOf(call({ ...overtaken, outcome: 'LOCK_LOST expired' }), second, paused)))).toEqual([]);
  });

  test('a loss that nothing caused is found', () => {
    const lost = call({ ...overtaken, trusted: 1_540, outcome: 'LOCK_LOST expired' });
    expect(texts(checkHonesty(evidenceOf(lost)))).toEqual([expect.stringMatching(/nothing caused it/)]);
    expect(texts(checkHonesty(evidenceOf(lost, fault('pause', 'w2', 100, 1_540))))).toHaveLength(1);
    expect(texts(checkHonesty(evidenceOf(lost, fault('cut', 'w1', 5))))).toHaveLength(1);
    expect(texts(checkHonesty(evidenceOf(lost, fault('delete', 'k', 1_500))))).toEqual([]);
    expect(texts(checkHonesty(evidenceOf(lost, fault('delete', 'k', 5))))).toHaveLength(1);
    expect(texts(checkHonesty(evidenceOf(lost, fault('delete', 'k', 1_500, 1_501, { fence: 6 }))))).toHaveLength(1);
    // The lease of a call before served it: the servers know the fence of that one.
    expect(texts(checkHonesty(evidenceOf(lost, fault('delete', 'k', 1_500, 1_501, { fence: 4 }))))).toEqual([]);
    expect(texts(checkHonesty(evidenceOf(lost, fault('delete', 'k', 1_500, 1_501, { fence: 5 - 16 }))))).toHaveLength(1);
    expect(texts(checkHonesty(evidenceOf(lost, fault('delete', 'k', 1_500, 1_501, { outcome: 'nothing' }))))).toHaveLength(1);
  });

  test('a machine that slept finds a loss later by as much as it slept', () => {
    const lost = call({ ...overtaken, trusted: 1_540, outcome: 'LOCK_LOST expired' });
    const taken = fault('delete', 'k', 5);
    const slept: HistoryEvent = { process: 'w1.1', op: 'slept', phase: 'info', since: 100, t: 1_200 };
    expect(texts(checkHonesty(evidenceOf(lost, taken)))).toHaveLength(1);
    expect(texts(checkHonesty(evidenceOf(lost, taken, [slept])))).toEqual([]);
    expect(texts(checkHonesty(evidenceOf(lost, taken, [{ ...slept, since: 1_100 }])))).toHaveLength(1);
  });

  test('one cut of its connections is no reason to lose a lease, and a deletion none to be notified of force', () => {
    const lost = call({ ...overtaken, trusted: 1_540, outcome: 'LOCK_LOST expired' });
    expect(texts(checkHonesty(evidenceOf(lost, fault('cut', 'w1', 1_000))))).toHaveLength(1);
    expect(texts(checkHonesty(evidenceOf(lost, fault('blackhole', 'w1', 900, 1_100))))).toEqual([]);
    const forced = call({ ...overtaken, trusted: 1_540, outcome: 'LOCK_LOST forced' });
    expect(texts(checkHonesty(evidenceOf(forced, fault('delete', 'k', 1_500))))).toHaveLength(1);
    expect(texts(checkHonesty(evidenceOf(forced, fault('force', 'k', 1_500))))).toEqual([]);
  });

  test('a loss that is notified before the deadline is no fault of the connections', () => {
    const lost = (trusted: number): HistoryEvent[] => call({ ...first, trusted, outcome: 'LOCK_LOST expired' });
    const cutOff = fault('killOnRelease', 'w1', 50, 900);
    expect(texts(checkHonesty(evidenceOf(lost(101), fault('blackhole', 'w1', -900, 90))))).toEqual([]);
    expect(texts(checkHonesty(evidenceOf(lost(102), fault('blackhole', 'w1', -900, 90))))).toHaveLength(1);
    expect(texts(checkHonesty(evidenceOf(lost(1_010), cutOff)))).toEqual([expect.stringMatching(/nothing caused it/)]);
  });

  test('a lease that is not renewed may run out, and end before that it may not', () => {
    const lost = (trusted: number): HistoryEvent[] => call({ ...first, trusted, isFixed: true, outcome: 'LOCK_LOST expired' });
    expect(texts(checkHonesty(evidenceOf(lost(101))))).toEqual([]);
    expect(texts(checkHonesty(evidenceOf(lost(102))))).toEqual([expect.stringMatching(/nothing caused it/)]);
  });

  test('a loss that is notified late is found, unless the process stood still until then', () => {
    const [invoke, ok, release, settled] = call({ ...first, left: 2_000, isFixed: true, outcome: 'LOCK_LOST expired' }) as [
      HistoryEvent,
      HistoryEvent,
      HistoryEvent,
      HistoryEvent,
    ];
    const notified = (t: number): HistoryEvent[] => [invoke, ok, { ...ok, op: 'lost', phase: 'info', t }, release, settled];
    const stall = (until: number): HistoryEvent[] => [{ process: 'w1.1', op: 'stall', phase: 'info', since: 900, t: until }];
    expect(texts(checkHonesty(evidenceOf(notified(1_100))))).toEqual([]);
    expect(texts(checkHonesty(evidenceOf(notified(1_700))))).toEqual(['the loss of "k" at fence 5 was notified 690 ms late in w1.1']);
    expect(texts(checkHonesty(evidenceOf(notified(1_700), stall(1_690))))).toEqual([]);
    expect(texts(checkHonesty(evidenceOf(notified(1_700), stall(1_400))))).toEqual([expect.stringMatching(/300 ms late/)]);
    expect(texts(checkHonesty(evidenceOf(notified(1_700), fault('blackhole', 'w1', 900, 1_700))))).toHaveLength(1);
    expect(texts(checkHonesty(evidenceOf([invoke, ok, release, settled])))).toEqual([expect.stringMatching(/late/)]);
  });

  test('a machine that slept knows later by as much as it slept, and by no more', () => {
    const [invoke, ok, release, settled] = call({ ...first, left: 4_000, isFixed: true, outcome: 'LOCK_LOST expired' });
    const notified = (t: number): HistoryEvent[] =>
      [invoke, ok, { ...ok, op: 'lost', phase: 'info', t }, release, settled].map((event) => event as HistoryEvent);
    const slept: HistoryEvent[] = [{ process: 'w1.1', op: 'slept', phase: 'info', since: 500, t: 1_100 }];
    expect(texts(checkHonesty(evidenceOf(notified(1_850), slept)))).toEqual([]);
    expect(texts(checkHonesty(evidenceOf(notified(1_900), slept)))).toEqual([expect.stringMatching(/290 ms late/)]);
    // One that was to sleep, and did not.
    expect(texts(checkHonesty(evidenceOf(notified(1_300), fault('sleep', 'w1', 100, 200))))).toHaveLength(1);
  });

  test('a row that is locked excuses its own key, and no other', () => {
    const lost = call({ ...overtaken, trusted: 1_540, outcome: 'LOCK_LOST expired' });
    expect(texts(checkHonesty(evidenceOf(lost, fault('lockRow', 'k', 100, 1_200))))).toEqual([]);
    expect(texts(checkHonesty(evidenceOf(lost, fault('lockRow', 'another', 100, 1_200))))).toHaveLength(1);
    const failed = call({ asked: 0, outcome: 'LOCK_STORE' });
    expect(texts(checkCalls(evidenceOf(failed, fault('lockRow', 'k', 0, 9))))).toEqual([]);
    expect(texts(checkCalls(evidenceOf(failed, fault('lockRow', 'another', 0, 9))))).toHaveLength(1);
  });

  test('whoever was overtaken by a later grant than the next one is found too', () => {
    const next = call({ process: 'w3.1', asked: 0, entered: 1_580, left: 1_600, fence: 6 });
    const later = call({ process: 'w2.1', asked: 0, entered: 1_500, left: 1_600, fence: 7 });
    expect(texts(checkHonesty(evidenceOf(call(overtaken), next, later)))).toContainEqual(expect.stringMatching(/w1.1 at fence 5/));
  });
});

describe('no turn is missed', () => {
  const waiting = { process: 'w2.1', asked: 0, trusted: 6_000, outcome: 'LOCK_NOT_ACQUIRED busy' };

  test('whoever waits while the lock is free is found, unless it was kept from its turn', () => {
    expect(texts(checkLiveness(evidenceOf(call(waiting))))).toEqual([
      expect.stringMatching(/waited for "k" while it was free for 6000 ms/),
    ]);
    expect(texts(checkLiveness(evidenceOf(call(waiting), fault('blackhole', 'w2', 2_000, 2_500))))).toEqual([]);
    expect(texts(checkLiveness(evidenceOf(call(waiting), fault('mute', 'w2', 2_000, 2_500))))).toHaveLength(1);
    expect(texts(checkLiveness(evidenceOf(call(waiting), call({ asked: 0, entered: 2_500, left: 2_600 }))))).toEqual([]);
  });

  test('what is left over is found', () => {
    expect(texts(checkLiveness({ ...evidenceOf(), leftovers: ['lock:lock:{k} is still there'] }))).toHaveLength(1);
  });

  test('the longer leases of a killed process are waited for: of a nested call, of a start and of an outage', () => {
    expect(hasLongerLease('lock:lock:{k} is still there, for 1372 ms')).toBe(false);
    expect(hasLongerLease('lock:lock:{k nest} is still there, for 1372 ms')).toBe(true);
    expect(hasLongerLease('lock:lock:{start-up check of 1} is still there, for 1372 ms')).toBe(true);
    expect(hasLongerLease('lock:lock:{nestjs-distributed-lock:health} is still there, for 1372 ms')).toBe(true);
  });
});

describe('turns are in order', () => {
  const waiting = call({ process: 'w2.1', asked: 0, entered: 3_000, left: 3_010 });
  const others = (count: number): HistoryEvent[][] =>
    Array.from({ length: count }, (_, at) => call({ asked: 500 + 10 * at, entered: 505 + 10 * at, left: 509 + 10 * at }));

  test('a process that passes another by more often than a burst is found', () => {
    expect(texts(checkOrder(evidenceOf(waiting, ...others(16))))).toEqual([]);
    expect(texts(checkOrder(evidenceOf(waiting, ...others(17))))).toEqual([expect.stringMatching(/had it 17 times first/)]);
    expect(texts(checkOrder(evidenceOf(waiting, ...others(17), fault('pause', 'w2', 600, 700))))).toEqual([]);
    expect(texts(checkOrder(evidenceOf(waiting, ...others(17), fault('mute', 'w2', 600, 700))))).toHaveLength(1);
  });

  test('a queue that was erased has no order to keep, and others have', () => {
    expect(texts(checkOrder(evidenceOf(waiting, ...others(17), fault('erase', 'k', 600, 601, { outcome: 'nothing' }))))).toEqual([]);
    expect(texts(checkOrder(evidenceOf(waiting, ...others(17), fault('erase', 'another', 600, 601))))).toHaveLength(1);
    expect(texts(checkOrder(evidenceOf(waiting, ...others(17), fault('delete', 'k', 600, 601))))).toHaveLength(1);
  });

  test('a process that is passed over by others in turn is found, unless it could not hear of its own', () => {
    const turns = (...processes: string[]): HistoryEvent[][] =>
      processes.map((process, at) => call({ process, asked: 0, entered: 500 + 10 * at, left: 509 + 10 * at }));
    expect(texts(checkOrder(evidenceOf(waiting, ...turns('w1.1', 'w3.1', 'w1.1', 'w1.1', 'w3.1'))))).toEqual([]);
    const often = turns('w1.1', 'w3.1', 'w1.1', 'w3.1', 'w1.1');
    expect(texts(checkOrder(evidenceOf(waiting, ...often)))).toEqual(['w2.1 waited for "k", and w1 had 3 turns first']);
    expect(texts(checkOrder(evidenceOf(waiting, ...often, fault('mute', 'w2', 600, 700))))).toEqual([]);
    expect(texts(checkOrder(evidenceOf(waiting, ...often, fault('deafen', 'w2', 600, 700))))).toEqual([]);
    expect(texts(checkOrder(evidenceOf(waiting, ...often, fault('deafen', 'w2', -5_000, 9_000))))).toHaveLength(1);
  });
});

test('turns are not judged where the store keeps no order, and the finding says so', () => {
  const waiting = call({ process: 'w2.1', asked: 0, entered: 3_000, left: 3_010 });
  const others = Array.from({ length: 17 }, (_, at) => call({ asked: 500 + 10 * at, entered: 505 + 10 * at, left: 509 + 10 * at }));
  const evidence = evidenceOf(waiting, ...others);
  expect(texts(checkOrder(evidence))).toHaveLength(1);
  expect(checkOrder({ ...evidence, keepsOrder: false })).toMatchObject({ seen: expect.stringMatching(/keeps no order/), violations: [] });
});

describe('where two of five servers may be away', () => {
  const failed = call({ asked: 1_000, trusted: 1_100, outcome: 'LOCK_STORE unknown' });
  const stalled = partial([0, 1], 'stall', 'servers', 900, 1_200);

  test('two explain no failure, and three do, be it their links or themselves', () => {
    expect(texts(checkCalls(evidenceWith(2, failed, stalled)))).toEqual([expect.stringMatching(/nothing had struck it/)]);
    expect(texts(checkCalls(evidenceWith(2, failed, partial([0, 1, 2], 'outage', 'servers', 900, 1_200))))).toEqual([]);
    expect(texts(checkCalls(evidenceWith(2, failed, stalled, partial([2], 'blackhole', 'w1', 900, 1_200))))).toEqual([]);
    expect(texts(checkCalls(evidenceWith(2, failed, stalled, partial([1], 'blackhole', 'w1', 900, 1_200))))).toHaveLength(1);
    expect(texts(checkCalls(evidenceWith(2, failed, stalled, partial([2], 'blackhole', 'w2', 900, 1_200))))).toHaveLength(1);
    expect(texts(checkCalls(evidenceWith(2, failed, stalled, partial([2], 'full', 'servers', 900, 1_200))))).toEqual([]);
    expect(texts(checkCalls(evidenceWith(2, failed, fault('pause', 'w1', 900, 1_000))))).toEqual([]);
    const slow = (server: number): HistoryEvent[] => [
      { process: 'nemesis', op: 'stall', phase: 'info', servers: [server], since: 1_000, t: 1_100 },
    ];
    expect(texts(checkCalls(evidenceWith(2, failed, stalled, slow(2))))).toEqual([]);
    expect(texts(checkCalls(evidenceWith(2, failed, stalled, slow(1))))).toHaveLength(1);
  });

  test('three that were away one after the other explain a loss, and no failure later', () => {
    const lost = call({ asked: 100, entered: 200, left: 1_500, trusted: 2_400, outcome: 'LOCK_LOST expired' });
    const third = partial([2], 'forget', 'servers', 1_100, 1_400);
    const early = partial([3, 4], 'stall', 'servers', 0, 300);
    expect(texts(checkHonesty(evidenceWith(2, lost, third)))).toEqual([expect.stringMatching(/nothing caused it/)]);
    expect(texts(checkHonesty(evidenceWith(2, lost, early, third)))).toEqual([]);
    expect(texts(checkHonesty(evidenceWith(2, lost, early, partial([3], 'forget', 'servers', 1_100, 1_400))))).toHaveLength(1);
    expect(texts(checkCalls(evidenceWith(2, failed, partial([3, 4], 'stall', 'servers', -900, -600), third)))).toHaveLength(1);
  });

  test('one that was away explains a loss where others had asked for the lock at the same moment', () => {
    const lost = call({ asked: 100, entered: 200, left: 1_500, trusted: 2_400, outcome: 'LOCK_LOST expired' });
    const away = partial([2], 'forget', 'servers', 1_100, 1_400);
    const contender = call({ process: 'w2.1', asked: 150, trusted: 210, outcome: 'LOCK_NOT_ACQUIRED busy' });
    const later = call({ process: 'w2.1', asked: 250, trusted: 310, outcome: 'LOCK_NOT_ACQUIRED busy' });
    expect(texts(checkHonesty(evidenceWith(2, lost, contender, away)))).toEqual([]);
    expect(texts(checkHonesty(evidenceWith(2, lost, contender)))).toEqual([expect.stringMatching(/nothing caused it/)]);
    expect(texts(checkHonesty(evidenceWith(2, lost, later, away)))).toHaveLength(1);
  });

  test('a ticket may be refused where three missed the vote, and else not', () => {
    const holder = call({ ...first, left: 900, owner: 'o' });
    const refused = call({ process: 'w2.1', owner: 'o', op: 'enter', asked: 500, trusted: 600, outcome: 'LOCK_LOST released' });
    const early = partial([3, 4], 'stall', 'servers', -500, 50);
    expect(texts(checkTickets(evidenceWith(2, holder, refused, early)))).toEqual([
      expect.stringMatching(/was refused at "k", whose lock ran/),
    ]);
    expect(texts(checkTickets(evidenceWith(2, holder, refused, early, partial([0], 'forget', 'servers', 300, 700))))).toEqual([]);
  });

  test('servers that are away excuse no overlap', () => {
    const second = call({ process: 'w2.1', asked: 0, entered: 90, left: 200, fence: 6 });
    const away = [partial([0, 1, 2], 'outage', 'servers', 0, 80), partial([3, 4], 'forget', 'servers', 80, 90)];
    expect(texts(checkOverlap(evidenceWith(2, call(first), second, ...away)))).toHaveLength(1);
  });
});

describe('calls end as they may', () => {
  test('a call that never ended is found, unless its process was killed', () => {
    const hung = call({ asked: 0, entered: 10 });
    expect(texts(checkCalls(evidenceOf(hung)))).toEqual(['w1.1 never ended its call on "k"']);
    expect(texts(checkCalls(evidenceOf(hung, fault('crash', 'w1', 50, 90))))).toEqual([]);
    expect(texts(checkCalls(evidenceOf(hung, fault('crash', 'w2', 50, 90))))).toHaveLength(1);
    const second = call({ process: 'w1.2', asked: 100, entered: 110 });
    expect(texts(checkCalls(evidenceOf(second, fault('crash', 'w1', 50, 90))))).toHaveLength(1);
  });

  test('a wait that lasts longer than was asked for is found, unless its process was kept from the servers', () => {
    const late = { asked: 0, trusted: 3_000, outcome: 'LOCK_NOT_ACQUIRED busy' };
    expect(texts(checkCalls(evidenceOf(call(late))))).toEqual([]);
    expect(texts(checkCalls(evidenceOf(call({ ...late, waitMs: 100 }))))).toEqual([expect.stringMatching(/w1.1 waited 3000 ms/)]);
    expect(texts(checkCalls(evidenceOf(call({ ...late, waitMs: 100 }), fault('pause', 'w1', 100, 2_000))))).toEqual([]);
    expect(texts(checkCalls(evidenceOf(call({ ...late, waitMs: 100 }), fault('mute', 'w1', 100, 2_000))))).toHaveLength(1);
    expect(texts(checkCalls(evidenceOf(call({ asked: 0, entered: 3_000, left: 3_010, waitMs: 100 }))))).toHaveLength(1);
    expect(texts(checkCalls(evidenceOf(call({ asked: 0 }).slice(0, 1), fault('crash', 'w1', 9_000, 9_100))))).toHaveLength(1);
  });

  test('a release that its caller waits for too long is found', () => {
    const [invoke, ok, release, settled] = call(first) as [HistoryEvent, HistoryEvent, HistoryEvent, HistoryEvent];
    expect(texts(checkCalls(evidenceOf([invoke, ok, release, { ...settled, t: 2_000 }])))).toEqual(['w1.1 took 1900 ms to give "k" back']);
  });

  test('an outcome that cannot be, and a failure of the store that nothing explains, are found', () => {
    const ended = (outcome: string): HistoryEvent[] => call({ asked: 0, outcome });
    expect(texts(checkCalls(evidenceOf(ended('thrown: TypeError: x is undefined'))))).toEqual([expect.stringMatching(/TypeError/)]);
    expect(texts(checkCalls(evidenceOf(ended('LOCK_NOT_ACQUIRED cycle'))))).toHaveLength(1);
    expect(texts(checkCalls(evidenceOf(ended('LOCK_STORE'))))).toEqual([expect.stringMatching(/nothing had struck it/)]);
    expect(texts(checkCalls(evidenceOf(ended('LOCK_STORE'), fault('blackhole', 'w2', 0, 9))))).toHaveLength(1);
    expect(texts(checkCalls(evidenceOf(ended('LOCK_STORE'), fault('blackhole', 'w1', 0, 9))))).toEqual([]);
  });
});

test('more connections than the pools may have are found, unless some were cut and may still be there', () => {
  const seen = (count: number): HistoryEvent[] => [
    { process: 'nemesis', op: 'connections', phase: 'info', since: 100, t: 2_000, count, most: 55 },
  ];
  expect(texts(checkConnections(evidenceOf(seen(55))))).toEqual([]);
  expect(texts(checkConnections(evidenceOf(seen(56))))).toEqual(['a server had 56 connections, and the pools of its clients may have 55']);
  expect(texts(checkConnections(evidenceOf(seen(56), fault('cut', 'w1', 50, 200))))).toEqual([]);
  expect(texts(checkConnections(evidenceOf(seen(56), fault('cut', 'w1', 50))))).toHaveLength(1);
  expect(texts(checkConnections(evidenceOf(seen(111), fault('cut', 'w1', 150))))).toHaveLength(1);
});

describe('one leads', () => {
  const told = (t: number, outcome: string, fence?: number): HistoryEvent[] => [
    { process: 'w1.1', op: 'leader', phase: 'info', key: 'k', t, fence, outcome },
  ];
  const once = [call(first), told(0, 'standby'), told(10, 'elected', 5), told(101, 'ended returned', 5)];
  const again = (asked: number): HistoryEvent[] => call({ asked, entered: asked + 1, left: asked + 2, outcome: 'returned', fence: 6 });
  const later = (asked: number): HistoryEvent[][] => [again(asked), told(asked + 1, 'elected', 6), told(asked + 3, 'ended returned', 6)];

  test('one that stands by again when its code has ended is fine', () => {
    expect(checkLeaders(evidenceOf(...once, ...later(150)))).toMatchObject({ seen: '2 leaders, none for 51 ms at most', violations: [] });
  });

  test('one that stands by while its code of before still runs is found', () => {
    expect(texts(checkLeaders(evidenceOf(...once, ...later(90))))).toEqual(['w1.1 stood by while its code of fence 5 still ran']);
  });

  test('one that neither leads nor stands by is found, unless its process was stopped or has ended', () => {
    const absent = 'w1.1 neither led nor stood by for 3899 ms';
    const stop: HistoryEvent[] = [{ process: 'w1.1', op: 'stop', phase: 'info', t: 4_000 }];
    expect(texts(checkLeaders(evidenceOf(...once, ...later(4_000))))).toEqual([absent]);
    expect(texts(checkLeaders(evidenceOf(...once, ...later(4_000), fault('pause', 'w1', 1_000, 3_000))))).toEqual([]);
    expect(texts(checkLeaders(evidenceOf(...once, stop)))).toEqual([absent]);
    expect(texts(checkLeaders(evidenceOf(...once)))).toEqual([]);
    expect(texts(checkLeaders(evidenceOf(...once, fault('crash', 'w1', 300, 900), stop)))).toEqual([]);
  });

  test('a change without its event is found', () => {
    expect(texts(checkLeaders(evidenceOf(call(first), told(10, 'elected', 5))))).toEqual([
      'w1.1 led at fence 5, and there was no event: ended',
    ]);
    const [invoke, ok, ...end] = call(first) as [HistoryEvent, HistoryEvent, ...HistoryEvent[]];
    const lost = [invoke, ok, { ...ok, op: 'lost', phase: 'info', t: 85 } as const, ...end];
    expect(texts(checkLeaders(evidenceOf(lost, ...once.slice(1))))).toEqual(['w1.1 led at fence 5, and there was no event: revoked']);
  });
});

test('a process that failed is found', () => {
  expect(texts(checkProcesses({ ...evidenceOf(), failures: ['w1.1 ended with exit code 1'] }))).toEqual(['w1.1 ended with exit code 1']);
});

describe('a run is too weak to count', () => {
  const twenty = Array.from({ length: 20 }, (_, at) => call({ asked: 10 * at, entered: 10 * at + 1, left: 10 * at + 2 }));
  const step = { at: 0, fault: 'pause', target: 'w1', ms: 10, chance: 0 } as const;
  const updates: HistoryEvent[] = [1, 2].map((t) => ({ process: 'w1.1', op: 'write', key: 'k', phase: 'ok', register: 'plain', t }));
  const holding = (plain: number): Evidence => ({
    ...evidenceOf(...twenty, updates, fault('pause', 'w1', 5, 9)),
    registers: new Map([['k', { claimed: 0, plain }]]),
  });

  test('where the control lost nothing in spite of pauses', () => {
    expect(weaknessesOf(holding(1), [step], 5)).toEqual([]);
    expect(weaknessesOf(holding(2), [step], 5)).toEqual([expect.stringMatching(/none of 2 updates .* 1 pauses/)]);
    expect(weaknessesOf(evidenceOf(...twenty), [], 5)).toEqual([]);
  });

  test('where no readers met, or no semaphore was full', () => {
    const reads = (process: string): HistoryEvent[] => call({ ...first, process, shares: 'read' });
    const takes = (permits: number): HistoryEvent[] => call({ ...first, shares: permits });
    const weak = (...events: HistoryEvent[][]): string[] => weaknessesOf(evidenceOf(...twenty, ...events), [], 5);
    expect(weak(reads('w1.1'), reads('w1.1'))).toEqual(['no readers of two processes were in a key together']);
    expect(weak(reads('w1.1'), reads('w2.1'))).toEqual([]);
    expect(weak(takes(2))).toEqual(['no semaphore was ever full']);
    expect(weak(takes(2), takes(2))).toEqual([]);
  });

  test('where a fault that was asked for never struck', () => {
    expect(weaknessesOf(holding(1), [step], 5, ['pause', 'flush'])).toEqual(['flush never struck']);
  });

  test('where locks were hardly used, or faults failed or were never over', () => {
    expect(weaknessesOf(evidenceOf(...twenty), [], 6)).toEqual([expect.stringMatching(/20 grants in 6 s/)]);
    const failure: HistoryEvent = { process: 'nemesis', op: 'start', phase: 'fail', fault: 'cut', target: 'w2', t: 5 };
    const failed = evidenceOf(...twenty, fault('cut', 'w2', 4, 6), [failure]);
    expect(weaknessesOf(failed, [{ ...step, fault: 'cut' }], 5)).toEqual([expect.stringMatching(/1 of 1 faults failed/)]);
    // A cut that belongs to another fault stands for no other step.
    expect(weaknessesOf(evidenceOf(...twenty, fault('cut', 'w2', 4, 6)), [step], 5)).toEqual([expect.stringMatching(/never over/)]);
    expect(weaknessesOf(evidenceOf(...twenty), [step], 5)).toEqual([expect.stringMatching(/1 of 1 faults were never over/)]);
    const leftOut: HistoryEvent = { process: 'nemesis', op: 'skip', phase: 'info', fault: 'pause', target: 'w1', t: 5 };
    expect(weaknessesOf(evidenceOf(...twenty, [leftOut]), [step], 5)).toEqual([expect.stringMatching(/1 were left out/)]);
  });
});

test('two faults of one name that overlap keep their own times, and what each took', () => {
  const events = [
    fault('delete', 'k', 0, 20, { fence: 5 }).map((event) => ({ ...event, step: 1 })),
    fault('delete', 'k', 10, 11, { fence: 6 }).map((event) => ({ ...event, step: 2 })),
  ];
  expect(evidenceOf(...events).faults.all).toMatchObject([
    { from: 10, to: 11, fence: 6 },
    { from: 0, to: 20, fence: 5 },
  ]);
});

test('a seed gives the same plan of faults, and another one another', () => {
  const options = { ms: 60_000, leaseMs: LEASE_MS, faults: Object.keys(FAULTS) as FaultName[], workers: ['w1', 'w2'], keys: ['a', 'b'] };
  expect(planFaults({ ...options, seed: 7 })).toEqual(planFaults({ ...options, seed: 7 }));
  expect(planFaults({ ...options, seed: 7 })).not.toEqual(planFaults({ ...options, seed: 8 }));
});

test.each(Object.entries(MUTANTS))('the mutant %s fits the library', (_, { edits }) => {
  for (const [file, from] of edits) {
    expect(readFileSync(file, 'utf8')).toContain(from);
  }
});
