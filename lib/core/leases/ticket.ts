import { LockConfigurationError } from '../words/errors.js';
import type { Shares } from '../words/call-options.js';
import { MOST_FENCES } from '../seam/lock-store.js';
import { quoted } from '../words/shown.js';

/** The store of an entry that names none. */
const DEFAULT_STORE = 'default';

/** Stands in the place of a position: all readers have the fence of their lock. */
const READ = 'R';

/**
 * The part of a ticket for one key: the secret of the lock's owner, the fence of the call, and the fence by which the
 * store knows the lock.
 */
export interface TicketEntry {
  /** The name under which the store is registered. */
  readonly store: string;
  readonly key: string;
  readonly secret: string;
  readonly fence: number;
  readonly storedFence: number;
  /** `'read'` for the lock of a reader; undefined in write mode. There is no ticket of a permit. */
  readonly shares?: Shares | undefined;
}

/** The ticket of a running lock: a capability. Every process that has it may enter, until the lock has ended. */
export function writeTicket(entries: readonly TicketEntry[]): string {
  return encode(
    entries.map(({ store, key, secret, storedFence, fence, shares }) => [
      key,
      secret,
      storedFence,
      shares === 'read' ? READ : fence - storedFence,
      ...(store === DEFAULT_STORE ? [] : [store]),
    ]),
  );
}

function encode(entries: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(entries)).toString('base64url');
}

/**
 * The entries of a text of at most `maxLength` characters. Throws `LockConfigurationError` for a text that is longer or
 * malformed; the error never repeats the text.
 */
export function readTickets(text: unknown, maxLength: number): readonly TicketEntry[] {
  if (typeof text === 'string' && text.length > maxLength) {
    throw new LockConfigurationError(
      `The text of the tickets has ${text.length} characters, and the limit is ${maxLength}. Make the call inside fewer locks, or raise maxLength.`,
    );
  }
  const entries = typeof text === 'string' ? decode(text) : undefined;
  if (!entries) {
    throw malformed('The text of the tickets', 'makeTickets()');
  }
  return entries;
}

/** The ticket's entry for a key. Throws `LockConfigurationError` for a malformed ticket, and for one of other keys. */
export function readTicket(ticket: string, key: string): TicketEntry {
  const entries = decode(ticket);
  if (!entries) {
    throw malformed(`Lock "${key}": the ticket`, 'lock.makeTicket()', key);
  }
  const entry = entries.find((candidate) => candidate.key === key);
  if (!entry) {
    throw new LockConfigurationError(
      `Lock "${key}": the ticket is for ${quoted(entries.map((other) => other.key))}. Pass the ticket of a lock on this key.`,
      key,
    );
  }
  return entry;
}

function malformed(what: string, origin: string, key?: string): LockConfigurationError {
  return new LockConfigurationError(`${what} is malformed. Make sure that it is what ${origin} returned, carried unchanged.`, key);
}

function decode(ticket: string): TicketEntry[] | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(ticket, 'base64url').toString());
  } catch {
    return undefined;
  }
  // Node passes over characters that are no base64, and JSON over white space.
  if (!Array.isArray(parsed) || parsed.length === 0 || encode(parsed) !== ticket) {
    return undefined;
  }
  const entries = (parsed as unknown[]).map(entryOf);
  return entries.includes(undefined) ? undefined : (entries as TicketEntry[]);
}

/** Reads one entry; undefined for a malformed one. */
function entryOf(item: unknown): TicketEntry | undefined {
  const [key, secret, storedFence, position, store = DEFAULT_STORE] = Array.isArray(item) ? (item as unknown[]) : [];
  if (typeof key !== 'string' || typeof secret !== 'string' || !Number.isSafeInteger(storedFence) || typeof store !== 'string') {
    return undefined;
  }
  const fence = storedFence as number;
  if (position === READ) {
    return { store, key, secret, storedFence: fence, fence, shares: 'read' };
  }
  return isPosition(position) ? { store, key, secret, storedFence: fence, fence: fence + position } : undefined;
}

/**
 * Whether a value can be the position of a call's fence in the block of its lock: a whole number from 0 to below
 * `MOST_FENCES`. So a ticket that was tampered with cannot have a fence further from the fence of its lock.
 */
function isPosition(position: unknown): position is number {
  return Number.isInteger(position) && (position as number) >= 0 && (position as number) < MOST_FENCES;
}
