import { LockConfigurationError } from './errors.js';

/** What a ticket has for one key: the secret of the lock's owner, and which grant of the lock. */
export interface TicketEntry {
  readonly key: string;
  readonly secret: string;
  readonly fence: number;
}

/** The ticket of a running lock: a capability. Every process that has it may enter, until the lock has ended. */
export function writeTicket(entries: readonly TicketEntry[]): string {
  return Buffer.from(JSON.stringify(entries.map(({ key, secret, fence }) => [key, secret, fence]))).toString('base64url');
}

/** The ticket's entry for a key. Throws `LockConfigurationError` for a malformed ticket, and for one of other keys. */
export function readTicket(ticket: string, key: string): TicketEntry {
  const entries = decode(ticket);
  if (!entries) {
    throw new LockConfigurationError(
      `Lock "${key}": the ticket is malformed. Make sure that it is the text of lock.ticket, carried unchanged.`,
      key,
    );
  }
  const entry = entries.find((candidate) => candidate.key === key);
  if (!entry) {
    throw new LockConfigurationError(
      `Lock "${key}": the ticket is for ${entries.map((other) => `"${other.key}"`).join(', ')}. Pass the ticket of a lock on this key.`,
      key,
    );
  }
  return entry;
}

function decode(ticket: string): TicketEntry[] | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(ticket, 'base64url').toString());
  } catch {
    return undefined;
  }
  if (!Array.isArray(parsed) || parsed.length === 0) {
    return undefined;
  }
  const entries: TicketEntry[] = [];
  for (const item of parsed as unknown[]) {
    const [key, secret, fence] = Array.isArray(item) ? (item as unknown[]) : [];
    if (typeof key !== 'string' || typeof secret !== 'string' || !Number.isSafeInteger(fence)) {
      return undefined;
    }
    entries.push({ key, secret, fence: fence as number });
  }
  return entries;
}
