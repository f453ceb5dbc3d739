/** How often it is tried: on a machine that stalls, so many in a row are hardly all late. */
const ROUNDS = 8;

/** The shortest of several times, in milliseconds: a stall makes some of them longer, and none shorter. Ends with the first below `enoughMs`. */
export async function quickest(enoughMs: number, run: () => Promise<number>): Promise<number> {
  let shortestMs = Infinity;
  for (let round = 0; round < ROUNDS && shortestMs >= enoughMs; round++) {
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
