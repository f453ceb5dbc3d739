import type { StoreHealth } from '../../core/words/lock-health.js';

/** How long a server may take to answer a probe, in milliseconds: all have answered or not within the second that core waits. */
export const PROBE_MS = 750;

/** What a server says: what its clock reads, in ms since 1970, and why it takes no locks, if it does not. */
export interface ProbeAnswer {
  readonly serverMs: number;
  readonly refuses?: StoreHealth['refuses'];
}

/** What the answer of one server shows. */
export interface Probe {
  readonly latencyMs: number;
  readonly clockSkewMs: number;
  readonly refuses?: StoreHealth['refuses'];
}

/** Asks a server, and compares its clock with the clock here. */
export async function probe(ask: () => Promise<ProbeAnswer>): Promise<Probe> {
  const [wallAt, sentAt] = [Date.now(), performance.now()];
  const { serverMs, refuses } = await ask();
  const latencyMs = performance.now() - sentAt;
  // The server read its clock at an unknown moment in between.
  return { latencyMs, clockSkewMs: serverMs - wallAt - latencyMs / 2, refuses };
}

/** The slowest answer, the clock that is furthest off, and why none takes any lock; nothing where nobody answered. */
export function worstOf(probes: readonly Probe[]): Partial<Probe> {
  const [first] = probes;
  return first
    ? {
        latencyMs: Math.max(...probes.map(({ latencyMs }) => latencyMs)),
        clockSkewMs: probes.reduce((worst, { clockSkewMs: ms }) => (Math.abs(ms) > Math.abs(worst) ? ms : worst), first.clockSkewMs),
        refuses: probes.every(({ refuses }) => refuses) ? first.refuses : undefined,
      }
    : {};
}
