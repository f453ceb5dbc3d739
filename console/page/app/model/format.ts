/** A time span for people, such as `340 ms`, `8.2 s`, `2 h 10 min`; a process of another version may not say it. */
export function span(ms: number): string {
  if (!Number.isFinite(ms)) {
    return '–';
  }
  if (ms < 1_000) {
    return `${Math.max(0, Math.round(ms))} ms`;
  }
  const seconds = ms / 1_000;
  if (seconds < 60) {
    return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  }
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${two(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}

function two(value: number): string {
  return String(Math.floor(value)).padStart(2, '0');
}

/** `1 call`, `2 calls`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
}

/** The value below which that part of the values lies; undefined where there are none. */
export function quantile(values: readonly number[], part: number): number | undefined {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
}

/** The time of day, to the second. */
export function timeOfDay(at: number): string {
  return new Date(at).toTimeString().slice(0, 8);
}

/** The date, as ISO 8601 has it. */
export function dateOf(at: number): string {
  const date = new Date(at);
  return [date.getFullYear(), date.getMonth() + 1, date.getDate()].map(two).join('-');
}

/** The zone of this browser at that time: `UTC+02:00`. */
export function zoneOf(at: number): string {
  const minutes = -new Date(at).getTimezoneOffset();
  return `UTC${minutes < 0 ? '−' : '+'}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
}
