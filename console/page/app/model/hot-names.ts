import { quantile } from './format.js';
import type { Ended, State } from './state.js';

/** The cost of the calls of one name. */
export interface HotName {
  readonly name: string;
  readonly acquired: number;
  /** The time that its calls have waited, and wait, all together, in milliseconds. */
  readonly waitedMs: number;
  readonly p95Ms: number | undefined;
  readonly refused: number;
  readonly lost: number;
  readonly heldNow: number;
  readonly waitingNow: number;
}

/** Whether a call ended without the lock that it wanted: the caller of one that was aborted wanted it no more. */
export function gaveUp({ outcome, reason }: Ended): boolean {
  return outcome === 'refused' && reason !== 'aborted';
}

/** Whether a call had its lock: one that ended in a way that is not known here had it where it had a fence. */
export function hadLock({ outcome, fence }: Ended): boolean {
  return outcome === 'released' || outcome === 'lost' || (outcome !== 'refused' && fence !== undefined);
}

const UNUSED = { acquired: 0, waitedMs: 0, p95Ms: undefined, refused: 0, lost: 0, heldNow: 0, waitingNow: 0 } as const;

/** The names, of all stores, those with the longest waits first. */
export function hotNames({ stores }: State, now: number): HotName[] {
  const names = new Map<string, { -readonly [Field in keyof HotName]: HotName[Field] } & { waits: number[] }>();
  const of = (name: string): NonNullable<ReturnType<(typeof names)['get']>> => {
    const known = names.get(name) ?? { ...UNUSED, name, waits: [] };
    names.set(name, known);
    return known;
  };
  for (const { ended, held, waiting } of stores) {
    for (const call of ended) {
      const { name, outcome, waitedMs } = call;
      const hot = of(name);
      hot.acquired += hadLock(call) ? 1 : 0;
      hot.refused += gaveUp(call) ? 1 : 0;
      hot.lost += outcome === 'lost' ? 1 : 0;
      hot.waitedMs += waitedMs;
      hot.waits.push(waitedMs);
    }
    for (const { name } of held) {
      const hot = of(name);
      hot.acquired++;
      hot.heldNow++;
    }
    for (const { name, since } of waiting) {
      const hot = of(name);
      hot.waitingNow++;
      // A row may be newer than the last tick of the page.
      hot.waitedMs += Math.max(0, now - since);
    }
  }
  return [...names.values()]
    .map(({ waits, ...hot }) => ({ ...hot, p95Ms: quantile(waits, 0.95) }))
    .toSorted((one, other) => other.waitedMs - one.waitedMs);
}
