import { LockConfigurationError } from '../../../lib/core/words/errors.js';
import type { LeftOut, ListedLock } from '../../../lib/operate/peers/lock-list.js';
import { sharing } from '../../../lib/core/words/shown.js';
import { absenceOf } from '../absence.js';
import { ageOf, shownMs } from '../age.js';
import type { CommandLine } from '../command-line.js';
import { columns, print, printJson, remark, tell } from '../output.js';
import type { Session } from '../session.js';
import { tableOf, type Column } from '../table.js';

/** For how long the store is searched, in milliseconds. */
const SEARCH_MS = 10_000;
/** The exit code where the store refused the search. */
const REFUSED = 3;

const COLUMNS: readonly Column<ListedLock>[] = [
  { title: 'KEY', text: ({ key }) => key, kind: 'long' },
  { title: 'HELD BY', text: ({ by }) => by, kind: 'long' },
  { title: 'MODE', text: ({ shares, holds }) => sharing(shares, holds) },
  { title: 'SINCE', text: ({ since }) => ageOf(since), kind: 'number' },
  { title: 'FENCE', text: ({ fence }) => String(fence), kind: 'number' },
  { title: 'LEASE LEFT', text: ({ remainingMs }) => shownMs(remainingMs), kind: 'number' },
  { title: 'WAITING', text: ({ waiting }) => String(waiting), kind: 'number' },
  { title: 'QUEUED', text: ({ waiters }) => String(waiters.length), kind: 'number' },
  { title: 'ANSWERS', text: ({ answers }) => (answers ? 'yes' : 'no') },
];

/** Lists the locks that are held, the oldest first; 3 where the user may not look for all of them. */
export async function list(session: Session, line: CommandLine): Promise<number> {
  const { argument, limit, json } = line;
  const listing = session.locks.list({ prefix: argument, limit, searchMs: SEARCH_MS });
  /** A lock that is found again has a later fence. */
  const byKey = new Map<string, ListedLock>();
  let isRefused = false;
  try {
    for await (const lock of listing) {
      byKey.set(lock.key, lock);
    }
  } catch (error) {
    // The user may not search the store; what processes say is worth showing all the same.
    if (!(error instanceof LockConfigurationError)) {
      throw error;
    }
    isRefused = true;
    tell(error.detail);
  }
  const found = [...byKey.values()].toSorted((one, other) => one.since.getTime() - other.since.getTime());
  if (json) {
    for (const { key, by, since, fence, remainingMs, holds, shares, processes, waiting, waiters, answers } of found) {
      printJson({ key, by, since, fence, remainingMs, holds, shares, processes, waiting, waiters, answers });
    }
  } else if (found.length > 0) {
    print(...tableOf(COLUMNS, found, columns()));
  } else if (!isRefused) {
    print('No locks are held.');
  }
  remark(hintOf(listing.leftOut, limit), line);
  if (found.length === 0 && !isRefused) {
    remark(await absenceOf(session, line), line);
  }
  return isRefused ? REFUSED : 0;
}

/** The parts that the list leaves out, and how to get them; empty where the list is whole. */
function hintOf({ rows, limited, unsearched }: LeftOut, limit: number): string {
  return [
    rows > 0 ? `Processes left out ${rows} locks and calls of their own.` : '',
    limited ? `The list ends at ${limit} locks: pass a higher --limit, or a longer PREFIX.` : '',
    unsearched && !limited ? 'The store was not searched to its end: locks of processes that do not answer may be missing.' : '',
  ]
    .filter(Boolean)
    .join(' ');
}
