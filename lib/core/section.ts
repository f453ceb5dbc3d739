import type { Acquisition } from './acquisition.js';
import type { Frame } from './frame.js';
import type { Lock } from './lock.js';
import type { LockedSection } from './telemetry.js';

/** What telemetry is told of a call that has its locks. `store` is the name under which the store is registered. */
export function sectionOf(store: string, { call, frame, waitedFor }: Acquisition<Frame>, lock: Lock): LockedSection {
  const { name, place } = call.caller;
  return {
    store,
    name,
    place,
    keys: frame.keys,
    fence: frame.fenceOf(frame.keys[0] as string),
    ttlMs: call.ttlMs,
    waitedMs: frame.waitedMs,
    contended: waitedFor !== undefined,
    get signal() {
      return lock.signal;
    },
  };
}
