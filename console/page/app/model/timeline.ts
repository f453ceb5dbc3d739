import { gaveUp } from './hot-names.js';
import { groupBy } from './lock-rows.js';
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

/** What happened to a key from `from` on: a lane for each process. */
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
  return [...groupBy(bars, ([process]) => process)]
    .map(([process, own]) => ({ process, bars: own.map(([, bar]) => bar).filter(({ to }) => to > from) }))
    .filter((lane) => lane.bars.length > 0)
    .toSorted((one, other) => (one.process < other.process ? -1 : 1));
}

type Owned = readonly [process: string, bar: Bar];

function endedBars(call: Ended): Owned[] {
  const { id, process, site, fence, reason, endedAt, heldMs, waitedMs, outcome } = call;
  const got = endedAt - heldMs;
  const common = { site, fence, reason };
  const wait: Bar = { ...common, id: `${id} wait`, kind: gaveUp(call) ? 'refused' : 'wait', from: got - waitedMs, to: got };
  const hold: Bar = { ...common, id, kind: outcome === 'lost' ? 'lost' : 'hold', from: got, to: endedAt };
  return [
    ...(waitedMs > 0 || outcome === 'refused' ? [[process, wait] as const] : []),
    ...(outcome === 'refused' ? [] : [[process, hold] as const]),
  ];
}

function runningBar({ process, site, callFence, since, fence }: Held, now: number): Bar {
  return { id: `${process} ${fence}`, kind: 'running', from: since, to: now, site, fence: callFence, reason: undefined };
}

function waitingBar({ id, site, since }: Waiting, now: number): Bar {
  return { id, kind: 'waiting', from: since, to: now, site, fence: undefined, reason: undefined };
}

/**
 * Where a lost call still ran when the next one had the lock already. A fence is the time of its grant by the clock of the store, in
 * microseconds, so the difference of two is exact whatever the clocks of the processes say.
 */
function overlaps(ended: readonly Ended[], held: readonly Held[], now: number): Owned[] {
  const grants = [
    ...ended.flatMap(({ fence, heldMs }) => (fence === undefined ? [] : [{ fence, heldMs }])),
    ...held.map(({ callFence, since }) => ({ fence: callFence, heldMs: now - since })),
  ].toSorted((one, other) => one.fence - other.fence);
  return ended.flatMap(({ id, process, site, fence = 0, outcome, heldMs, endedAt }): Owned[] => {
    const next = outcome === 'lost' ? grants.find((grant) => grant.fence > fence) : undefined;
    const togetherMs = next ? Math.min(heldMs - (next.fence - fence) / 1_000, next.heldMs) : 0;
    const from = endedAt - (heldMs - ((next?.fence ?? 0) - fence) / 1_000);
    return togetherMs > 0
      ? [[process, { id: `${id} overlap`, kind: 'overlap', from, to: from + togetherMs, site, fence, reason: undefined }]]
      : [];
  });
}
