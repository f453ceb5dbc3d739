const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A time for people, such as `8.2 s` and `3 h 5 min`; `-` where there is no end. */
export function shownMs(ms: number): string {
  if (!Number.isFinite(ms)) {
    return '-';
  }
  const time = Math.max(0, ms);
  if (time < SECOND) {
    return `${Math.round(time)} ms`;
  }
  if (time < MINUTE) {
    return `${(Math.floor(time / 100) / 10).toFixed(1)} s`;
  }
  const [large, largeMs, small, smallMs] = unitsOf(time);
  return `${Math.floor(time / largeMs)} ${large} ${Math.floor((time % largeMs) / smallMs)} ${small}`;
}

/** The unit of a time, and the one below it. */
function unitsOf(time: number): readonly [string, number, string, number] {
  if (time < HOUR) {
    return ['min', MINUTE, 's', SECOND];
  }
  return time < DAY ? ['h', HOUR, 'min', MINUTE] : ['d', DAY, 'h', HOUR];
}

/** For how long something has been, by the clock of this machine. */
export function ageOf(since: Date): string {
  return shownMs(Date.now() - since.getTime());
}
