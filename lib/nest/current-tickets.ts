import { Observable } from 'rxjs';
import { currentCall } from '../core/calls/call-tree.js';
import { checkOptions, wrongOption } from '../core/words/check-options.js';
import { EnteredTickets, MOST_TICKET_CHARACTERS } from '../core/entering/entered-tickets.js';
import { Frame } from '../core/entering/frame.js';
import { writeTicket, type TicketEntry } from '../core/leases/ticket.js';
import { isObservable } from './methods/return-kind.js';

/** The options of `enterTickets`. */
export interface EnterTicketsOptions {
  /** The most characters that are read. Default: 4,096, which is about forty locks. */
  maxLength?: number | undefined;
}

/**
 * The text of the tickets for all locks that the running code is inside of, in whichever store, and of the tickets that
 * it came with; undefined outside of any lock. `enterTickets` reads the text, in this process or another one. The text
 * is a capability: every process that has it may enter these locks while they last. Never log it.
 *
 * A lock with a ticket goes back to its store when its call ends, also where the next call of this process waits for
 * it.
 */
export function makeTickets(): string | undefined {
  const entries = new Map<string, TicketEntry>();
  for (let call = currentCall(); call; call = call.parent) {
    const own = call instanceof Frame && call.lock ? call.makeTicketEntries() : call instanceof EnteredTickets ? call.entries : [];
    for (const entry of own) {
      const name = JSON.stringify([entry.store, entry.key]);
      // A nested call would enter the lock of the innermost call, so its ticket counts.
      if (!entries.has(name)) {
        entries.set(name, entry);
      }
    }
  }
  return entries.size === 0 ? undefined : writeTicket([...entries.values()]);
}

/**
 * Runs `fn` so that locked calls inside it on the keys of the tickets, in a store of the same name, enter those locks
 * with the same fence, instead of waiting for them. Calls on other keys wait as always. Calls that run in parallel
 * inside it take turns.
 *
 * Lasts until the promise of `fn` settles; where `fn` returns an Observable, for each of its subscriptions. With an
 * undefined `text`, `fn` runs as it is.
 *
 * Throws `LockConfigurationError` for a text that is malformed or too long. A call inside rejects with `LockLostError`
 * where the lock of its ticket has ended, or where the ticket was made up.
 */
export function enterTickets<T>(text: string | undefined, fn: () => T, options: EnterTicketsOptions = {}): T {
  const maxLength = checkMaxLength(options, 'enterTickets');
  if (text === undefined) {
    return fn();
  }
  const entered = new EnteredTickets(text, maxLength);
  const result = entered.run(fn);
  return isObservable(result) ? (eachInside(result as Observable<unknown>, entered) as T) : result;
}

/** Makes each subscription, with the work that it sets off, run inside. */
function eachInside(source: Observable<unknown>, entered: EnteredTickets): Observable<unknown> {
  return new Observable((subscriber) => {
    entered.begin();
    subscriber.add(() => entered.end());
    subscriber.add(entered.run(() => source.subscribe(subscriber)));
  });
}

/** Throws `LockConfigurationError` for a limit that is invalid. */
export function checkMaxLength(options: EnterTicketsOptions, site: string): number {
  checkOptions(site, options, { maxLength: true });
  const { maxLength = MOST_TICKET_CHARACTERS } = options;
  if (!Number.isSafeInteger(maxLength) || maxLength < 1) {
    throw wrongOption(`${site}: maxLength`, maxLength, 'Pass a whole number of characters, 1 or more.');
  }
  return maxLength;
}
