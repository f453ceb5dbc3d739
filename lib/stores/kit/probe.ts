/** How long a server may take to answer a probe, in milliseconds: all have answered or not within the second that core waits. */
export const PROBE_MS = 750;

/** What the answer of one server shows. */
export interface Probe {
  readonly latencyMs: number;
  readonly clockSkewMs: number;
}

/** Asks a server what its clock reads, in ms since 1970, and compares that with the clock here. */
export async function probe(askTime: () => Promise<number>): Promise<Probe> {
  const [wallAt, sentAt] = [Date.now(), performance.now()];
  const serverMs = await askTime();
  const latencyMs = performance.now() - sentAt;
  // The server read its clock at an unknown moment in between.
  return { latencyMs, clockSkewMs: serverMs - wallAt - latencyMs / 2 };
}

/** The slowest answer, and the clock that is furthest off; nothing where nobody answered. */
export function worstOf(probes: readonly Probe[]): Partial<Probe> {
  const [first] = probes;
  return first
    ? {
        latencyMs: Math.max(...probes.map(({ latencyMs }) => latencyMs)),
        clockSkewMs: probes.reduce((worst, { clockSkewMs: ms }) => (Math.abs(ms) > Math.abs(worst) ? ms : worst), first.clockSkewMs),
      }
    : {};
}
