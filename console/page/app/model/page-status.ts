import type { Condition } from './condition.js';
import type { ConnectionStatus, State } from './state.js';

/** How far what is shown can be trusted: the connection, whether news come over it, and the stores. */
export type PageStatus = ConnectionStatus | 'stale' | Exclude<Condition, 'up'>;

/**
 * News come every two to three seconds; an application that has sent none for this long stands still, in milliseconds.
 */
const STALE_MS = 6_000;

const CONDITIONS = ['down', 'unknown', 'degraded'] as const;

/** `live` only where news come, and every store answered and has nothing wrong. */
export function pageStatus({ connection, stores, at }: State, now: number): PageStatus {
  if (connection !== 'live' && connection !== 'polling') {
    return connection;
  }
  if (at === undefined) {
    return 'connecting';
  }
  if (now - at > STALE_MS) {
    return 'stale';
  }
  return CONDITIONS.find((each) => stores.some(({ condition }) => condition === each)) ?? connection;
}
