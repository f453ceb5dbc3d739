import { callerOf } from '../../../lib/core/words/caller';
import { Lease } from '../../../lib/core/leases/lease';
import { momentOf } from '../../../lib/core/seam/time';
import { Owner } from '../../../lib/core/leases/hold';
import { ManualClock } from '../../support/manual-clock';

const TTL_MS = 3_000;

let clock: ManualClock;

function wanted(): Lease {
  return new Lease(clock, 'k', Owner.next(), {
    caller: callerOf('tester', 'tester', 'tester'),
    ttlMs: TTL_MS,
    renew: true,
    shares: undefined,
  });
}

/** One that was granted with fences for two calls. */
function granted(): Lease {
  const lease = wanted();
  lease.askForBlock(1);
  lease.start(7, momentOf(clock), true);
  return lease;
}

beforeEach(() => {
  clock = new ManualClock();
});

describe('a lease that serves the next call while a renewal is on its way', () => {
  test.each([false, true])('passes the answer on: held is %s before the call had it', (held) => {
    const [first, next] = [granted(), wanted()];
    const [record, sent] = [first.renewal(clock.now), momentOf(clock)];
    first.term.setRenewing(true);
    const { fence, sent: grantedAt } = first.serve(next);
    expect(first.renewalAnswered(held, record, sent)).toBe(next);
    next.start(fence, grantedAt, true);
    expect([next.state, next.isLive]).toEqual(held ? ['held', true] : ['gone', false]);
    // The code of the next call is to be notified at once.
    expect(next.term.notifyAt <= clock.now).toBe(!held);
  });

  test('is not asked for the renewal again by the call that has it now', () => {
    const [first, next] = [granted(), wanted()];
    first.term.setRenewing(true);
    const { fence, sent } = first.serve(next);
    next.start(fence, sent, true);
    clock.now += TTL_MS / 2;
    expect(next.term.needsRenewal(clock.now, false)).toBe(false);
    expect(first.renewalAnswered(true, next.renewal(clock.now), momentOf(clock))).toBe(next);
    clock.now += TTL_MS / 2;
    expect(next.term.needsRenewal(clock.now, false)).toBe(true);
  });
});

describe('what a sleeping machine missed of a lease', () => {
  /** The monotonic clock stood still for a third of the lease. */
  function sleep(lease: Lease): void {
    clock.wallAheadMs += TTL_MS / 3;
    expect(lease.remainingMs).toBeLessThan(TTL_MS);
  }

  /** The answer to what was sent before the grant, when the wall clock read less. */
  function hearFromBefore(lease: Lease): void {
    lease.confirmed({ monotonic: clock.now - 100, wall: clock.wall() - 100 - TTL_MS / 3 }, TTL_MS);
    expect(lease.remainingMs).toBeLessThan(TTL_MS);
  }

  test.each([
    ['when it slept', sleep],
    ['when it hears from before its sleep', hearFromBefore],
  ])('stays missed for the call that is served: %s', (_name, miss) => {
    const [first, next] = [granted(), wanted()];
    miss(first);
    const { fence, sent } = first.serve(next);
    next.start(fence, sent, true);
    expect(next.remainingMs).toBe(first.remainingMs);
    clock.now += first.remainingMs;
    expect(next.doubt).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
  });
});

test('a wall clock that is read in whole milliseconds casts no doubt on a lease before its end', () => {
  clock.wall = () => Math.floor(clock.now) + clock.wallAheadMs;
  clock.now += 0.9;
  const lease = granted();
  clock.now += lease.remainingMs - 0.5;
  expect([lease.isLive, lease.doubt]).toEqual([true, undefined]);
});

test('a lease that is over stays so, whatever a confirmation says that was sent in time', () => {
  const lease = granted();
  const sent = momentOf(clock);
  clock.now += TTL_MS - 10;
  lease.confirmed(sent, 2 * TTL_MS);
  expect(lease.isLive).toBe(false);
});
