import { isLockError } from './errors.js';
import type { LockEvent, EventOfLock } from './lock-event.js';

/** What the debug log says besides the events. */
export type DebugNote =
  | LockEvent
  | (EventOfLock & { readonly type: 'busy'; readonly heldBy: string; readonly heldMs: number; readonly remainingMs: number })
  | (EventOfLock & { readonly type: 'queued'; readonly behind: number })
  | (EventOfLock & { readonly type: 'reentered'; readonly fence: number })
  | (EventOfLock & { readonly type: 'failedAgain'; readonly error: Error });

/** One line: what happened to which key, the details, and by whom. */
export function debugLine({ type, store, key, by, ...details }: DebugNote): string {
  const shown = Object.entries(details)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${name}=${show(value)}`);
  return `${type} ${JSON.stringify(key)}${shown.join('')} by=${JSON.stringify(by)} store=${store}`;
}

function show(value: unknown): string {
  if (typeof value === 'number') {
    return String(Math.round(value));
  }
  return JSON.stringify(isLockError(value) ? value.detail : String(value));
}
