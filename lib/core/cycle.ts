import { isAncestor } from './context.js';
import type { Hold } from './hold.js';
import type { LockFrame } from './lock-frame.js';

/** The calls that wait at the moment, and the hold whose top call each waits for. */
export type WaitingFrames = ReadonlyMap<LockFrame, Hold>;

/**
 * The keys of a cycle that would close if `frame` waited for `hold`: siblings of one context that nest in opposite
 * order, each waiting for what the other has. Undefined where there is none.
 */
export function findCycle(frame: LockFrame, hold: Hold, waiting: WaitingFrames): string[] | undefined {
  return search(frame, hold, waiting, new Set());
}

function search(frame: LockFrame, hold: Hold, waiting: WaitingFrames, seen: Set<Hold>): string[] | undefined {
  if (seen.has(hold)) {
    return undefined;
  }
  seen.add(hold);
  const top = hold.frames.at(-1);
  if (!top) {
    return undefined;
  }
  for (const [blocked, wanted] of waiting) {
    // The call on top cannot leave while a call made from inside it waits.
    if (top !== blocked && !isAncestor(top, blocked)) {
      continue;
    }
    const next = wanted.frames.at(-1);
    if (next && (next === frame || isAncestor(next, frame))) {
      return [hold.key, wanted.key];
    }
    const further = search(frame, wanted, waiting, seen);
    if (further) {
      return [hold.key, ...further];
    }
  }
  return undefined;
}
