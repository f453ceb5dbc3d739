import type { Evidence, Finding } from './check.js';

/** No process ends by itself, by an unhandled rejection for instance, and each ends when it is asked to. */
export function checkProcesses({ history, failures }: Evidence): Finding {
  const started = history.filter(({ op, fault }) => op === 'start' && fault === undefined).length;
  return { check: 'processes live and end', seen: `${started} processes`, violations: failures.map((text) => ({ text, entries: [] })) };
}
