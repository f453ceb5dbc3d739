import { isAncestor } from './context.js';
import type { Hold } from './hold.js';
import type { LockFrame } from './lock-frame.js';

/** What a call waits for: whichever hold has the key at the moment, or none while its caller is still trying. */
export interface Wanted {
  readonly hold: Hold | undefined;
}

/**
 * The keys of a cycle that would close if `frame` waited for `wanted`: calls that nest in opposite order, each waiting
 * for what the other has. Undefined where there is none.
 */
export function findCycle(frame: LockFrame, wanted: Wanted, waiting: ReadonlyMap<LockFrame, Wanted>): string[] | undefined {
  return search(frame, wanted, waiting, new Set());
}

function search(frame: LockFrame, wanted: Wanted, waiting: ReadonlyMap<LockFrame, Wanted>, seen: Set<Hold>): string[] | undefined {
  const { hold } = wanted;
  const top = hold?.frames.at(-1);
  if (!hold || !top || seen.has(hold)) {
    return undefined;
  }
  seen.add(hold);
  for (const [blocked, next] of waiting) {
    // The call on top cannot leave while a call made from inside it waits.
    if (top !== blocked && !isAncestor(top, blocked)) {
      continue;
    }
    const holder = next.hold?.frames.at(-1);
    if (next.hold && holder && (holder === frame || isAncestor(holder, frame))) {
      return [hold.key, next.hold.key];
    }
    const further = search(frame, next, waiting, seen);
    if (further) {
      return [hold.key, ...further];
    }
  }
  return undefined;
}
