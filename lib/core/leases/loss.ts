import { LockLostError, type LostReason } from '../words/errors.js';
import type { Lease } from './lease.js';

/** Why a lease ended; `gone`: the store said so before its time was over. */
export type LossCause = LostReason | 'gone';

/** The error of a lease that ended before its code did, or before the transaction did that alone kept it. */
export function lossOf({ key, heldMs, renews }: Lease, cause: LossCause, kept: boolean): LockLostError {
  const ended = kept ? ' Its code had ended, and the transaction around it had not: roll it back.' : '';
  return new LockLostError(
    `Lock "${key}" was lost after ${Math.round(heldMs)} ms: ${cause === 'expired' && !renews ? NOT_RENEWED : WHY[cause]}${ended}`,
    key,
    cause === 'gone' ? 'expired' : cause,
  );
}

/**
 * The error of a call whose lease was lost, and whose code did not end in the time that it had after it was notified.
 */
export function stillRunning(loss: LockLostError, graceMs: number): LockLostError {
  return new LockLostError(
    `${loss.detail} Its code still runs ${Math.round(graceMs)} ms after its signal aborted: ` +
      'pass lock.signal to what it awaits, and repeat the call only where two may run at once.',
    loss.key,
    loss.reason,
    true,
  );
}

/** Why a lease cannot be trusted at this moment, though it is not lost. */
export function doubtOf(key: string): LockLostError {
  return new LockLostError(
    `Lock "${key}" cannot be trusted at this moment: the wall clock went past the end of its lease, so the machine slept, or its ` +
      'clock was set. Repeat the call; lock.isHeld() is true again once the store has renewed the lease.',
    key,
    'expired',
  );
}

/** The error for code whose `maxHold` is over. */
export function maxHoldOver(key: string, endsInMs: number): LockLostError {
  return new LockLostError(
    `Lock "${key}" has been held for its maxHold. It is not renewed any more and ends in ${Math.ceil(endsInMs)} ms. ` +
      'Make sure that the code stops when lock.signal aborts, or raise maxHold.',
    key,
    'maxHold',
  );
}

const WHY: Readonly<Record<LossCause, string>> = {
  gone: 'the store no longer has it. It was deleted, flushed or evicted, or the store restarted without its data: find out by whom, and let the resource refuse the old fence.',
  expired:
    'its lease ended before the code did. Check lock.signal in long sections, raise ttl above the longest pause, and let the resource refuse the old fence.',
  forced: 'an operator released it by force. Find out why before the call is repeated.',
  released: 'it was released while code inside it still ran. Release it after the last use.',
  maxHold: 'the code ran on after its maxHold. Stop when lock.signal aborts, or raise maxHold.',
  shutdown: 'the application shut down. Let sections end before the server has drained, or repeat the call after the restart.',
};

const NOT_RENEWED = 'its lease ended, and is not renewed (renew: false). Raise ttl, or call lock.extend().';

/** Why a lease is not to be trusted any more whose time is over. */
export function whyExpired({ state }: Lease): LossCause {
  return state === 'gone' ? 'gone' : state === 'overdue' ? 'maxHold' : 'expired';
}
