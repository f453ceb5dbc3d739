import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLockError } from '../../lib/core/words/errors.js';
import type { Messages } from '../../lib/core/seam/lock-store.js';

/** For how long messages to this process may not arrive before it goes on without them, in milliseconds. */
const MOST_MS = 1_000;
const AGAIN_MS = 50;

/** Resolves when messages arrive that this process sends to itself: answers of others would be missed before. */
export async function hears(messages: Messages): Promise<void> {
  const text = JSON.stringify({ kind: 'echo', id: randomUUID() });
  const heard = new AbortController();
  messages.onMessage((each) => each === text && heard.abort());
  const giveUpAt = performance.now() + MOST_MS;
  while (!heard.signal.aborted && performance.now() < giveUpAt) {
    try {
      await messages.send(text, messages.process);
    } catch (error) {
      if (isLockError(error) && error.code === 'LOCK_CONFIGURATION') {
        // The user may not publish, so nobody can be asked.
        return;
      }
    }
    await sleep(AGAIN_MS, undefined, { signal: heard.signal }).catch(() => undefined);
  }
}
