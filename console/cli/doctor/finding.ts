import { isLockError } from '../../../lib/core/words/errors.js';

/** What the doctor says of one thing. */
export interface Finding {
  readonly level: 'ok' | 'warn' | 'FAIL';
  /** What it is about, such as `server 2: eviction`. */
  readonly subject: string;
  /** What was found, and what to do. */
  readonly text: string;
}

export function ok(subject: string, text: string): Finding {
  return { level: 'ok', subject, text };
}

export function warning(subject: string, text: string): Finding {
  return { level: 'warn', subject, text };
}

/** What an error says; one that is not of this library is a defect, and passes. */
export function failure(subject: string, error: unknown): Finding {
  if (!isLockError(error)) {
    throw error;
  }
  return { level: 'FAIL', subject, text: error.detail };
}
