import type { PageInfo, SearchStep, Snapshot, SnapshotChanges } from '../../snapshot.js';

/** The messages that the server sends. */
export type Message = PageInfo | Snapshot | SnapshotChanges | SearchStep;

/**
 * The message in a text; undefined for a text that has none. An interceptor of the application may have put the message
 * into an envelope.
 */
export function messageIn(text: string): Message | undefined {
  let value: unknown = text;
  for (let depth = 0; depth < 4; depth++) {
    if (typeof value === 'string') {
      value = parsed(value);
    }
    if (typeof value !== 'object' || value === null) {
      return undefined;
    }
    if ('kind' in value) {
      return value as Message;
    }
    value = (value as { data?: unknown }).data;
  }
  return undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
