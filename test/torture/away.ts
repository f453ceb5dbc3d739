import type { Interval } from './interval.js';

/** A time in which servers are away, by their numbers; undefined for all of them. */
export interface Away extends Interval {
  readonly servers?: readonly number[] | undefined;
}

/** When more servers were away at once than may be. */
export function beyond(spare: number, times: readonly Away[]): Interval[] {
  const found: Interval[] = times.filter(({ servers }) => servers === undefined).map(({ from, to }) => ({ from, to }));
  const changes = times
    .flatMap(({ from, to, servers = [] }) =>
      servers.flatMap((server) => [
        { t: from, server, by: 1 },
        { t: to, server, by: -1 },
      ]),
    ) // prettier-ignore
    .toSorted((first, second) => first.t - second.t);
  const away = new Map<number, number>();
  let since: number | undefined;
  for (const { t, server, by } of changes) {
    const count = (away.get(server) ?? 0) + by;
    away.set(server, count);
    if (count === 0) {
      away.delete(server);
    }
    if (away.size > spare) {
      since ??= t;
    } else if (since !== undefined) {
      found.push({ from: since, to: t });
      since = undefined;
    }
  }
  return found;
}

/**
 * How many of the servers were away at some moment of a time, at once or one after the other; only servers that have
 * numbers count.
 */
export function everAway(during: Interval, times: readonly Away[]): number {
  return new Set(times.filter(({ from, to }) => from <= during.to && to >= during.from).flatMap(({ servers = [] }) => servers)).size;
}
