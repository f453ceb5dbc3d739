/** How often it is tried at least, and for how long: on a machine that stalls, so many in a row are hardly all late. */
const LEAST = { rounds: 8, ms: 15_000 } as const;

/**
 * The shortest of several times, in milliseconds: a stall makes some of them longer, and none shorter. Ends with the
 * first below `enoughMs`.
 */
export async function quickest(enoughMs: number, run: () => Promise<number>): Promise<number> {
  const startedAt = performance.now();
  let shortestMs = Infinity;
  for (let round = 0; shortestMs >= enoughMs && (round < LEAST.rounds || performance.now() - startedAt < LEAST.ms); round++) {
    shortestMs = Math.min(shortestMs, await run());
  }
  return shortestMs;
}

/** How long a call takes, in milliseconds. */
export async function timeOf(call: Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await call;
  return performance.now() - startedAt;
}
