import type { HoldRecord } from '../core/seam/lock-store.js';
import { throwIfAllFailed } from '../kit/all-failed.js';
import { isForbidden } from './connection/redis-errors.js';

/** Renews holds, and answers for each of them. */
type Renew = (holds: readonly HoldRecord[]) => Promise<(boolean | undefined)[]>;

/** Renews each hold by itself: one that fails is answered by undefined, and does not take the others along. */
export async function renewEach(holds: readonly HoldRecord[], renew: Renew): Promise<(boolean | undefined)[]> {
  const answers = await Promise.allSettled(holds.map((hold) => renew([hold])));
  throwIfAllFailed(answers);
  return answers.map((answer) => (answer.status === 'fulfilled' ? answer.value[0] : undefined));
}

/**
 * Renews all holds together; each by itself where the user may not access the keys of one, so that the server refused
 * the whole command.
 */
export async function renewTogether(holds: readonly HoldRecord[], renew: Renew): Promise<(boolean | undefined)[]> {
  try {
    return await renew(holds);
  } catch (error) {
    if (holds.length > 1 && isForbidden(error)) {
      return renewEach(holds, renew);
    }
    throw error;
  }
}
