import type { StoreState } from './state.js';

/** A process as it is shown: `api-1 · 4242`. */
export function processName({ processes }: StoreState, id: string): string {
  const process = processes.get(id);
  return process ? `${process.host} · ${process.pid}` : id.replace(/:(\d+)[:#].*$/, ' · $1');
}
