import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLockError } from '../../lib/core/words/errors.js';
import type { Messages } from '../../lib/core/seam/lock-store.js';
import type { Address } from './address/address.js';

/**
 * For how long messages to this process may not arrive, in milliseconds: a subscription that was just asked for takes
 * its time.
 */
const MOST_MS = 3_000;
const AGAIN_MS = 50;

/**
 * The part of a store's warning that names the refused SUBSCRIBE and the right to grant; the rest is for applications.
 */
const REFUSED = /^.* refused SUBSCRIBE on .*?(?=; until then)/;

/**
 * Why messages that this process sends to itself do not arrive, so that those of others would not either: a right that
 * is missing, or what the store said last; undefined where they do. `warnings` are those of the store, also later ones.
 */
export async function whyUnheard(
  messages: Messages,
  address: Pick<Address, 'kind'>,
  warnings: readonly string[],
): Promise<string | undefined> {
  const text = JSON.stringify({ kind: 'echo', id: randomUUID() });
  const heard = new AbortController();
  const over = new AbortController();
  messages.onMessage((each) => each === text && heard.abort(), over.signal);
  const refusal = (): string | undefined => warnings.map((warning) => REFUSED.exec(warning)?.[0]).find((found) => found !== undefined);
  const giveUpAt = performance.now() + MOST_MS;
  let failure: string | undefined;
  while (!heard.signal.aborted && refusal() === undefined && performance.now() < giveUpAt) {
    try {
      failure = undefined;
      await messages.send(text, messages.process);
    } catch (error) {
      if (!isLockError(error)) {
        throw error;
      }
      failure = error.detail;
      if (error.code === 'LOCK_CONFIGURATION') {
        break;
      }
    }
    await sleep(AGAIN_MS, undefined, { signal: heard.signal }).catch(() => undefined);
  }
  over.abort();
  if (heard.signal.aborted) {
    return undefined;
  }
  const refused = refusal();
  return refused === undefined ? (failure ?? unheardBy(address)) : `${refused}.`;
}

/** Why messages do not arrive that were sent, and what to do. */
export function unheardBy({ kind }: Pick<Address, 'kind'>): string {
  return kind === 'postgres'
    ? 'No NOTIFY arrives. A pooler in transaction mode, such as pgbouncer, passes no LISTEN: give PostgresLockStore the address of the server itself as the option listen, or let the pool lead there.'
    : 'No message arrives. Grant SUBSCRIBE and PUBLISH, and the channels &<prefix>:wake:*.';
}
