import { LockStoreError, type LockError } from '../../../core/words/errors.js';
import type { Verdict } from './standing.js';

/** The error for a vote that does not count. `failure` is why the server was not checked last. */
export function notCounted(verdict: Verdict | undefined, failure: LockError | undefined): LockStoreError {
  const reason = verdict ? reasonOf(verdict) : (failure?.detail ?? 'it is not known yet whether it restarted');
  return new LockStoreError(reason, '', { unknown: true });
}

function reasonOf(verdict: Verdict): string {
  if (verdict.counts !== undefined) {
    return 'its votes count in a moment';
  }
  switch (verdict.why) {
    case 'new':
      return `it is new, and its votes count in ${Math.ceil(verdict.inMs)} ms unless a process knows that it had votes before`;
    case 'restarted':
      return `it restarted not long ago, and its votes count in ${Math.ceil(verdict.inMs)} ms`;
    case 'unheard':
      return `it may have been replaced, and its votes count in ${Math.ceil(verdict.inMs)} ms, or when the servers that are away are back`;
    case 'replaced':
      return 'other processes have another server in its place';
  }
}

/** The warning of a server whose votes do not count. */
export function warningOf(verdict: Verdict | undefined): string {
  return verdict?.counts === undefined && verdict?.why === 'restarted'
    ? `it restarted not long ago, or came in the place of another, and may have forgotten locks. Its votes count in ${Math.ceil(verdict.inMs / 1_000)} s.`
    : 'other processes have another server in its place, so its votes do not count. Give all processes the same list of servers; ' +
        'docs/stores/quorum.md says how to change it.';
}
