import { LockStoreError } from '../../lib/core/words/errors';
import { notCounted } from '../../lib/quorum/members/member-messages';
import { verdictOf, type Overview, type Standing } from '../../lib/quorum/members/standing';

/** A server that was in use when the quorum was used first. */
const OLD: Standing = { at: 0, knownMs: 900_000, counts: true, firstUseMs: 899_000, restarted: false, fence: 1, reported: [] };
/** One that is known since a moment, and has no record. */
const FRESH: Standing = { ...OLD, knownMs: 1_000, counts: false, firstUseMs: undefined };
const NEVER_USED: Standing = { ...FRESH, knownMs: 500 };
const FULL = ['vote:a', 'vote:b', 'vote:c'];

interface Case {
  readonly cause: string;
  readonly standings: Overview['standings'];
  readonly silentMs?: readonly number[];
  readonly reason: string;
}

// The first server is the one that is judged; its run is `new`.
test.each<Case>([
  {
    cause: 'it restarted, and a process knows that',
    standings: [{ ...FRESH, restarted: true }, OLD, OLD],
    reason: 'it restarted not long ago, or came in the place of another, and its votes count in 59000 ms at the earliest',
  },
  {
    cause: 'it restarted, and its earlier run was reported not long ago',
    standings: [{ ...FRESH, restarted: true }, { ...OLD, reported: FULL }, OLD],
    reason: 'it restarted not long ago, or came in the place of another, and its votes count in 121000 ms at the earliest',
  },
  {
    cause: 'it was away when the quorum was first used, or was emptied while it ran',
    standings: [FRESH, OLD, OLD],
    reason: 'it was first seen not long ago, or was emptied, and its votes count in 59000 ms at the earliest',
  },
  {
    cause: 'processes have another list, or it restarted and none says so',
    standings: [FRESH, { ...OLD, reported: FULL }, OLD],
    reason:
      'other processes have another server in its place, or had this one before it restarted: ' +
      'its votes count in 121000 ms unless they still have another one by then',
  },
  {
    cause: 'processes have another list, and it has run for longer than reports hold',
    standings: [{ ...FRESH, knownMs: 200_000 }, { ...OLD, reported: FULL }, OLD],
    reason: 'other processes have another server in its place, or had it not long ago',
  },
  {
    cause: 'no server was used before',
    standings: [NEVER_USED, NEVER_USED, NEVER_USED],
    reason: 'it seems to be new, and its votes count in 1500 ms unless a process knows that it had votes before',
  },
  {
    cause: 'no server was used before, and most are away',
    standings: [NEVER_USED, undefined, undefined],
    silentMs: [0, 9_000, 9_000],
    reason: 'it seems to be new, and too few servers answer to be sure',
  },
  {
    cause: 'it is back, and another one is away',
    standings: [{ ...OLD, counts: false }, OLD, undefined],
    silentMs: [0, 0, 20_000],
    reason: 'it may have been replaced, and a server that would know it is away or was emptied: its votes count in 40000 ms at the latest',
  },
  {
    cause: 'it is back, and another one was emptied, which is there',
    standings: [{ ...OLD, counts: false }, OLD, FRESH],
    reason: 'it may have been replaced, and a server that would know it is away or was emptied: its votes count in 59000 ms at the latest',
  },
  { cause: 'it counts, as was just found', standings: [OLD, OLD, OLD], reason: 'its votes count in a moment' },
])('a vote does not count, and the reason is true, where $cause', ({ standings, silentMs = [0, 0, 0], reason }) => {
  const verdict = verdictOf(standings[0] as Standing, {
    ...{ standings, silentMs, run: 'new', counting: new Set<string>(), longestLeaseMs: 60_000, holdMs: 122_000, now: 0 },
  });
  expect(notCounted(verdict, undefined).detail).toBe(reason);
});

test('a vote of a server that was never asked does not count, and the reason is why it was not', () => {
  expect(notCounted(undefined, undefined).detail).toBe('it is not known yet whether it restarted');
  expect(notCounted(undefined, new LockStoreError('Redis did not answer', '', { unknown: true })).detail).toBe('Redis did not answer');
});
