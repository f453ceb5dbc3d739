import { setTimeout as sleep } from 'node:timers/promises';
import { now } from './history.js';

/** How often a server is asked, in milliseconds. */
const PULSE_MS = 20;
/** An answer is slow that takes so long, in milliseconds: the shortest limit of a command here is 250. */
const SLOW_MS = 50;

/**
 * Asks a server over and over until `isOver`, and calls `slow` with the beginning of each time without an answer. The
 * machine may be busy: the server has stood still, or this process, which has the proxies before it.
 */
export async function watchServer(ping: () => Promise<unknown>, slow: (since: number) => void, isOver: () => boolean): Promise<void> {
  let answeredAt = now();
  while (!isOver()) {
    await ping().catch(() => undefined);
    if (!isOver() && now() - answeredAt > PULSE_MS + SLOW_MS) {
      slow(answeredAt);
    }
    answeredAt = now();
    await sleep(PULSE_MS);
  }
}
