import { groupedBy } from '../../../../lib/core/words/grouped-by.js';
import { gaveUp, hadLock } from './hot-names.js';
import type { Ended, Held, StoreState, Waiting } from './state.js';

/** A stretch of time, drawn as a bar. */
export interface Bar {
  readonly id: string;
  readonly kind: 'hold' | 'running' | 'lost' | 'wait' | 'waiting' | 'refused' | 'overlap';
  readonly from: number;
  readonly to: number;
  readonly site: string;
  readonly fence: number | undefined;
  readonly reason: string | undefined;
}

/** The bars of one process. */
export interface Lane {
  readonly process: string;
  readonly bars: readonly Bar[];
}

/** The history of a key from `from` on: a lane for each process. */
export function timeline(store: StoreState, key: string, from: number, now: number): Lane[] {
  const ended = store.ended.filter((call) => call.key === key && call.endedAt > from);
  const held = store.held.filter((lock) => lock.key === key);
  const waiting = store.waiting.filter((call) => call.key === key);
  const bars = [
    ...ended.flatMap(endedBars),
    ...overlaps(ended, held, now),
    ...held.map((lock) => [lock.process, runningBar(lock, now)] as const),
    ...waiting.map((call) => [call.process, waitingBar(call, now)] as const),
  ];
  return [...groupedBy(bars, ([process]) => process)]
    .map(([process, own]) => ({ process, bars: own.map(([, bar]) => bar).filter(({ to }) => to > from) }))
    .filter((lane) => lane.bars.length > 0)
    .toSorted((one, other) => (one.process < other.process ? -1 : 1));
}

type Owned = readonly [process: string, bar: Bar];

function endedBars(call: Ended): Owned[] {
  const { id, process, site, fence, reason, endedAt, heldMs, waitedMs, outcome, ranOnMs = 0 } = call;
  const got = endedAt - heldMs;
  const common = { site, fence, reason };
  const wait: Bar = { ...common, id: `${id} wait`, kind: gaveUp(call) ? 'refused' : 'wait', from: got - waitedMs, to: got };
  const hold: Bar = { ...common, id, kind: outcome === 'lost' ? 'lost' : 'hold', from: got, to: endedAt + ranOnMs };
  return [...(waitedMs > 0 || !hadLock(call) ? [[process, wait] as const] : []), ...(hadLock(call) ? [[process, hold] as const] : [])];
}

function runningBar({ process, site, callFence, since, fence }: Held, now: number): Bar {
  return { id: `${process} ${fence} ${since}`, kind: 'running', from: since, to: now, site, fence: callFence, reason: undefined };
}

function waitingBar({ id, site, since }: Waiting, now: number): Bar {
  return { id, kind: 'waiting', from: since, to: now, site, fence: undefined, reason: undefined };
}

/**
 * A hold that may be beside a lost call: when it began by the clock of the store, in milliseconds, and how long it
 * lasts so far.
 */
interface Grant {
  readonly fence: number;
  readonly at: number;
  readonly heldMs: number;
}

/**
 * The times in which the code of a lost call still ran when others had the lock already. A fence is the time of its
 * grant by the clock of the store, in microseconds, so the difference of two fences is exact whatever the clocks of the
 * processes say.
 */
function overlaps(ended: readonly Ended[], held: readonly Held[], now: number): Owned[] {
  const grants = [
    ...ended.flatMap((call) => grantOf(call) ?? []),
    // When one began that its process serves with a grant of before is not known yet.
    ...held
      .filter(({ fence, callFence }) => fence === callFence)
      .map(({ fence, since }) => ({ fence, at: fence / 1_000, heldMs: now - since })),
  ];
  return ended.filter(({ outcome }) => outcome === 'lost').flatMap((call) => besides(call, grants));
}

function besides(call: Ended, grants: readonly Grant[]): Owned[] {
  const { id, process, site, heldMs, endedAt, ranOnMs = 0 } = call;
  const own = grantOf(call);
  const later = own ? grants.filter(({ fence }) => fence > own.fence) : [];
  return later.flatMap((other, at): Owned[] => {
    const fromMs = other.at - (own as Grant).at;
    const toMs = Math.min(fromMs + other.heldMs, heldMs + ranOnMs);
    const got = endedAt - heldMs;
    const common = { id: `${id} overlap ${at}`, site, fence: own?.fence, reason: undefined };
    return fromMs < toMs ? [[process, { ...common, kind: 'overlap', from: got + fromMs, to: got + toMs }]] : [];
  });
}

function grantOf({ fence, servedMs = 0, heldMs }: Ended): Grant | undefined {
  return fence === undefined ? undefined : { fence, at: fence / 1_000 + servedMs, heldMs };
}
