import type { Acquisition } from './acquisition.js';
import type { Frame } from './frame.js';
import type { Lock } from './lock.js';
import type { LockedSection } from './telemetry.js';

/** What telemetry learns of a call that has its locks. */
export function sectionOf({ store, call, frame, hasWaited }: Acquisition<Frame>, lock: Lock): LockedSection {
  const { name, site } = call.caller;
  return {
    store,
    name,
    place: site,
    keys: frame.keys,
    fence: frame.fenceOf(frame.keys[0] as string),
    ttlMs: call.ttlMs,
    waitedMs: frame.waitedMs,
    contended: hasWaited,
    get signal() {
      return lock.signal;
    },
  };
}
