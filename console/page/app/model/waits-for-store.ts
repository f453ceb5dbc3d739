import { grantsNothing } from './condition.js';
import type { StoreState, Waiting } from './state.js';

/** Whether a call waits for its store, and not only for a holder. */
export function waitsForStore({ processes }: StoreState, { process }: Waiting): boolean {
  const health = processes.get(process)?.health;
  return health !== undefined && grantsNothing(health.reasons);
}
