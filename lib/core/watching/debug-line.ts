import { isLockError, type LockHolder } from '../words/errors.js';
import type { LockEvent, EventOfLock } from '../words/lock-event.js';

/** The notes of the debug log: the events, and those that are only logged. */
export type DebugNote =
  | LockEvent
  | (EventOfLock & { readonly type: 'busy'; readonly heldBy: string; readonly heldMs: number; readonly remainingMs: number })
  | (EventOfLock & { readonly type: 'queued'; readonly behind: number })
  | (EventOfLock & { readonly type: 'reentered'; readonly fence: number })
  | (EventOfLock & { readonly type: 'failedAgain'; readonly error: Error });

/**
 * One line: what happened, the key, the details, the caller and the store. The line leaves out `process` and `site`,
 * since `by` has both; and `name`, which is for counting calls only; and write mode.
 */
export function debugLine(note: DebugNote): string {
  const { type, store, key, by, name: _name, process: _process, site: _site, mode, ...others } = note;
  const details = mode === 'write' ? others : { mode, ...others };
  const shown = Object.entries(details)
    .filter(([, value]) => value !== undefined && value !== false)
    .map(([field, value]) => ` ${field}=${show(field, value)}`);
  return `${type} ${JSON.stringify(key)}${shown.join('')} by=${JSON.stringify(by)} store=${store}`;
}

function show(field: string, value: unknown): string {
  if (typeof value === 'number') {
    return field === 'margin' ? value.toFixed(2) : String(Math.round(value));
  }
  if (field === 'holder') {
    return JSON.stringify((value as LockHolder).by);
  }
  return JSON.stringify(isLockError(value) ? value.detail : String(value));
}
