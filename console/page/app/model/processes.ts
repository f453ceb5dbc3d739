import type { StoreState } from './state.js';

/** A process as it is shown: `api-1 · 4242`. */
export function processName({ processes }: StoreState, id: string): string {
  const process = processes.get(id);
  return process ? `${process.host} · ${process.pid}` : id.replace(/:(\d+)[:#].*$/, ' · $1');
}

/** The short name of a process that is named in words: `api-1 (pid 4242)`. */
export function shownProcess(words: string): string {
  return words.replace(/ \(pid (\d+)\)$/, ' · $1');
}
