import type { Shares } from '../words/call-options.js';

/** The kind of a key for as long as somebody is in: a lock, or a semaphore. */
export type KeyKind = 'lock' | 'semaphore';

/** The kind of key that a hold needs. */
export function kindOfKey(shares: Shares | undefined): KeyKind {
  return typeof shares === 'number' ? 'semaphore' : 'lock';
}

/** The end of the name of a place, which says how its process wants the key. */
export function placeEnd(shares: Shares | undefined): string {
  return shares === undefined ? '' : shares === 'read' ? 'R' : `P${shares}`;
}

/** How the process in a place wants the key. */
export function sharesOfPlace(name: string): Shares | undefined {
  if (name.endsWith('R')) {
    return 'read';
  }
  const at = name.lastIndexOf('P');
  return at < 0 ? undefined : Number(name.slice(at + 1));
}
