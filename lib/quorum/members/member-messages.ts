import { LockStoreError, type LockError } from '../../core/words/errors.js';
import type { Verdict } from './standing.js';

type Waiting = Extract<Verdict, { readonly why: unknown }>;

const FORGOTTEN = 'It may have forgotten locks.';
const SAME_LIST = 'Give all processes the same list of servers; docs/stores/quorum.md says how to change it.';
/** The advice of a warning, besides its reason; nothing is warned of that is over soon. */
const ADVICE: Readonly<Record<Waiting['why'], string | undefined>> = {
  new: undefined,
  unheard: undefined,
  restarted: FORGOTTEN,
  unknown: FORGOTTEN,
  contested: SAME_LIST,
  replaced: SAME_LIST,
};

/** The error for a vote that does not count. `failure` is why the server was not checked last. */
export function notCounted(verdict: Verdict | undefined, failure: LockError | undefined): LockStoreError {
  const reason = verdict ? reasonOf(verdict) : (failure?.detail ?? 'it is not known yet whether it restarted');
  return new LockStoreError(reason, '', { unknown: true });
}

/** The warning of a server whose votes do not count for long; undefined for others. */
export function warningOf(verdict: Verdict): string | undefined {
  const advice = verdict.counts === undefined ? ADVICE[verdict.why] : undefined;
  return advice && `${reasonOf(verdict)}. ${advice}`;
}

/** Several causes look the same here. The reason names each of those. */
function reasonOf(verdict: Verdict): string {
  if (verdict.counts !== undefined) {
    return 'its votes count in a moment';
  }
  const inMs = `in ${Math.ceil(verdict.inMs)} ms`;
  switch (verdict.why) {
    case 'new':
      return verdict.inMs === Infinity
        ? 'it seems to be new, and too few servers answer to be sure'
        : `it seems to be new, and its votes count ${inMs} unless a process knows that it had votes before`;
    case 'restarted':
      return `it restarted not long ago, or came in the place of another, and its votes count ${inMs} at the earliest`;
    case 'unknown':
      return `it was first seen not long ago, or was emptied, and its votes count ${inMs} at the earliest`;
    case 'contested':
      return (
        'other processes have another server in its place, or had this one before it restarted: ' +
        `its votes count ${inMs} unless they still have another one by then`
      );
    case 'unheard':
      return `it may have been replaced, and a server that would know it is away or was emptied: its votes count ${inMs} at the latest`;
    case 'replaced':
      return 'other processes have another server in its place, or had it not long ago';
  }
}
