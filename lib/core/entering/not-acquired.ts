import type { CallNode } from '../calls/call-tree.js';
import { keysOf, type Cycle } from '../words/cycle-call.js';
import { LockNotAcquiredError, type LockHolder, type NotAcquiredReason } from '../words/errors.js';
import { Lease } from '../leases/lease.js';
import type { Shares } from '../words/call-options.js';
import type { Busy } from '../seam/lock-store.js';
import { quoted } from '../words/shown.js';

/** The facts that are known when a call gives up. */
interface GivingUp {
  readonly key: string;
  readonly reason: NotAcquiredReason;
  readonly frame: CallNode;
  /** The caller that is refused. */
  readonly site: string;
  readonly reentry: 'context' | 'never';
  readonly shares: Shares | undefined;
  readonly waitMs: number;
  readonly waitedMs: number;
  readonly now: number;
  /** Who has the lock: a lease of this process, or the holder that the store named. */
  readonly holder?: Lease | Busy | undefined;
  /** The calls that wait for each other, with the refused call among them. */
  readonly cycle?: Cycle | undefined;
  readonly cause?: unknown;
}

export function notAcquired(givingUp: GivingUp): LockNotAcquiredError {
  const { key, shares, reason, waitedMs, now, holder, cycle, cause } = givingUp;
  const seen = holder && seenHolder(holder, now);
  const permits = typeof shares === 'number' ? shares : undefined;
  const what = permits === undefined ? `Lock "${key}" was not acquired` : `Semaphore "${key}" gave none of its ${permits} permits`;
  return new LockNotAcquiredError(`${what}${explain(givingUp, seen?.holder)}`, key, {
    reason,
    waitedMs,
    // A call that gives way lets the others go on: it need not wait for the end of a lease. No wait mends an upgrade.
    retryAfterMs: reason === 'cycle' || reason === 'upgrade' ? 0 : (seen?.remainingMs ?? 0),
    holder: seen?.holder,
    cycle: cycle?.calls,
    permits,
    cause,
  });
}

/** Whether the holder is named: a store that has only reserved the lock names none. */
export function namesHolder(holder: Lease | Busy): boolean {
  return holder instanceof Lease || holder.holder.by !== '';
}

/** Who has the lock: nobody where it is only reserved. */
export function seenHolder(holder: Lease | Busy, now: number): { holder: LockHolder | undefined; remainingMs: number } {
  if (!(holder instanceof Lease)) {
    return { holder: namesHolder(holder) ? holder.holder : undefined, remainingMs: holder.remainingMs };
  }
  return {
    holder: { by: holder.caller.by, heldMs: Math.round(now - holder.acquiredAt) },
    remainingMs: holder.term.deadline - now,
  };
}

function explain(givingUp: GivingUp, holder: LockHolder | undefined): string {
  const { reason, waitMs, waitedMs } = givingUp;
  switch (reason) {
    case 'aborted':
      return `: the call's signal aborted after ${Math.round(waitedMs)} ms of waiting.`;
    case 'tooManyWaiters':
      return ': too many calls of this process wait already. Shorten what runs inside the lock, or raise maxWaiters.';
    case 'shutdown':
      return ': the application is shutting down. Repeat the call after the restart.';
    case 'upgrade':
      return explainUpgrade(givingUp);
    case 'cycle':
      return explainCycle(givingUp.cycle as Cycle);
    case 'busy': {
      const limit = waitMs === 0 ? ' at once' : ` within ${waitMs} ms`;
      const who = holder ? `${howHeld(givingUp)} by ${holder.by} since ${seconds(holder.heldMs)}` : 'other calls are before this one';
      const cure = ownHandle(givingUp) ?? ownCaller(givingUp) ?? kept(givingUp) ?? deadlock(givingUp);
      return `${limit}: ${who}. ${cure ?? `Raise wait, or shorten what runs inside the lock.${lostContext(givingUp)}`}`;
    }
  }
}

/** Two calls that read, and then want to write, would wait for each other. */
function explainUpgrade({ site, holder }: GivingUp): string {
  const outer = holder instanceof Lease && !holder.isJoined ? holder.caller.site : undefined;
  if (outer === undefined) {
    return `: ${site} writes, and came with the ticket of a call that only reads. Give that call mode: 'write', or send no ticket of it.`;
  }
  return `: ${site} writes, and was called inside ${outer}, which only reads. Give ${outer} mode: 'write', or call ${site} outside of it.`;
}

function explainCycle(cycle: Cycle): string {
  const { scope, calls } = cycle;
  if (scope === 'process') {
    return (
      `: calls of this process wait for each other (${keysOf(cycle).join(' → ')}). ` +
      'Take the locks in one order, or all at once with a list of keys.'
    );
  }
  const all = calls.map(
    ({ process, site, holds, heldMs, waitsFor }) =>
      `${process} ${site} holds "${holds}" since ${seconds(heldMs)} and waits for "${waitsFor}"`,
  );
  const processes = new Set(calls.map(({ process }) => process)).size;
  return (
    `: ${calls.length} calls in ${processes} ${processes === 1 ? 'process' : 'processes'} wait for each other. ${all.join('; ')}. ` +
    'This call got its lock last and gives way: repeat it. To end this for good, take the locks in one order, or all at once with a list of keys.'
  );
}

/** A handle cannot mark the caller's later code, so a call made beside it waits for its own caller. */
function ownHandle({ frame, holder }: GivingUp): string | undefined {
  const top = holder instanceof Lease ? holder.calls.top : undefined;
  return top?.isHandle && top.parent === frame.parent
    ? 'The holder is a handle from acquire() in this process: if this call belongs to it, make the call inside lock.run(…).'
    : undefined;
}

/**
 * The advice where an enclosing call holds the lock: the refused call could re-enter the lock, and perhaps its holder
 * awaits it.
 */
function ownCaller({ frame, reentry, holder }: GivingUp): string | undefined {
  const top = holder instanceof Lease ? holder.calls.top : undefined;
  return reentry === 'never' && top && frame.isInside(top)
    ? "The call was made inside that holder: where that one awaits it, no wait is long enough. Leave out reentry: 'never', or call it outside of the lock."
    : undefined;
}

/** The code of the holder has ended, so that nothing in it can be shorter. Of a transaction, only its calls enter. */
function kept({ holder }: GivingUp): string | undefined {
  if (holder instanceof Lease && holder.state === 'lingering') {
    return 'Its code has ended, and minHold keeps the lock. Raise wait, or lower minHold.';
  }
  return holder instanceof Lease && holder.calls.isOnlyKept
    ? 'Its code has ended, and the transaction around it has not. Shorten the transaction, or raise wait. If this call belongs to it, make sure ' +
        "that LockModule's option transaction returns the same promise for all calls of a transaction."
    : undefined;
}

/**
 * A lease of this process that is in the way of a permit is that of a lock. Of different counts, the smallest counts.
 */
function howHeld({ shares, holder }: GivingUp): string {
  if (typeof shares !== 'number') {
    return 'it is held';
  }
  if (holder instanceof Lease) {
    return 'it is held as a lock';
  }
  const named = holder?.permits ?? shares;
  return `${named < shares ? `a holder counts only ${named}: ` : ''}all are taken, the first`;
}

/**
 * A call that waits while it holds another lock: where the holder waits for that lock, a longer wait changes nothing.
 */
function deadlock({ key, frame, waitMs }: GivingUp): string | undefined {
  const held = new Set<string>();
  for (let at = frame.parent; at; at = at.parent) {
    at.keys.forEach((other) => held.add(other));
  }
  frame.transaction?.kept.forEach((lease) => held.add(lease.key));
  held.delete(key);
  if (held.size === 0 || waitMs === 0) {
    return undefined;
  }
  return (
    `This call holds ${quoted([...held])} while it waits: if another call takes these locks in the opposite order, the two wait for each other. ` +
    `Take the keys in one call, withLock([${quoted([...held, key].toSorted())}], …), or in the same order everywhere.`
  );
}

/** A call of this process had the lock all the time: one that has lost its context waits so for its own caller. */
function lostContext({ holder, now, waitMs, waitedMs }: GivingUp): string {
  return holder instanceof Lease && waitMs > 0 && holder.acquiredAt <= now - waitedMs
    ? ' The holder is a call of this process: if this call was made inside it, by a callback or a listener, no wait is long enough. ' +
        'Bind that with AsyncResource.bind(…).'
    : '';
}

function seconds(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${ms < 10_000 ? Math.round(ms / 100) / 10 : Math.round(ms / 1000)} s`;
}
