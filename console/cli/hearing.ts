import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLockError } from '../../lib/core/words/errors.js';
import type { Messages } from '../../lib/core/seam/lock-store.js';

/** For how long messages to this process may not arrive before it goes on without them, in milliseconds. */
const MOST_MS = 1_000;
const AGAIN_MS = 50;

/** The part of a store's warning that names the refused SUBSCRIBE and the right to grant; the rest is for applications. */
const REFUSED = /^.* refused SUBSCRIBE on .*?(?=; until then)/;

/**
 * Resolves when messages arrive that this process sends to itself: answers of others would be missed before. Where they do not, resolves
 * with the right that is missing, if one is; `warnings` are those of the store, also later ones.
 */
export async function whyUnheard(messages: Messages, warnings: readonly string[]): Promise<string | undefined> {
  const text = JSON.stringify({ kind: 'echo', id: randomUUID() });
  const heard = new AbortController();
  messages.onMessage((each) => each === text && heard.abort());
  const giveUpAt = performance.now() + MOST_MS;
  while (!heard.signal.aborted && performance.now() < giveUpAt) {
    try {
      await messages.send(text, messages.process);
    } catch (error) {
      if (isLockError(error) && error.code === 'LOCK_CONFIGURATION') {
        return error.detail;
      }
    }
    await sleep(AGAIN_MS, undefined, { signal: heard.signal }).catch(() => undefined);
  }
  const refusal = warnings.map((warning) => REFUSED.exec(warning)?.[0]).find((found) => found !== undefined);
  return heard.signal.aborted || refusal === undefined ? undefined : `${refusal}.`;
}
