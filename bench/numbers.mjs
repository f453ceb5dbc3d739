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
