import { setTimeout as sleep } from 'node:timers/promises';
import { LockStoreError } from '../../core/words/errors.js';

/**
 * For how long a start tries again, in milliseconds: the process, or a server, may stall for a second on a busy
 * machine.
 */
const PATIENCE_MS = 2_500;
const PAUSE_MS = 100;

/** Tries again where a server gives no answer. A refusal is final, also the refusal of a port where nothing listens. */
export async function patiently<T>(attempt: () => Promise<T>): Promise<T> {
  const endsAt = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!isSilence(error) || performance.now() >= endsAt) {
        throw error;
      }
    }
    await sleep(PAUSE_MS);
  }
}

/** Whether a server gave no answer, and may be slow. */
export function isSilence(error: unknown): boolean {
  const cause = error instanceof LockStoreError ? (error.cause as { code?: unknown } | undefined) : undefined;
  return error instanceof LockStoreError && cause?.code !== 'ECONNREFUSED';
}
