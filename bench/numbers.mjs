export function median(values) {
  return percentile(values, 50);
}

/** Half of the values lie between them. */
export function quartiles(values) {
  return [percentile(values, 25), percentile(values, 75)];
}

export function percentile(values, percent) {
  const sorted = Float64Array.from(values).toSorted();
  const at = ((sorted.length - 1) * percent) / 100;
  const [low, high] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return low + (high - low) * (at - Math.floor(at));
}

/** Milliseconds on the one monotonic clock that all processes of the machine share. */
export function machineMs() {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Numbers from 0 to 1 that are the same in each run: mulberry32. */
export function pseudoRandom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
