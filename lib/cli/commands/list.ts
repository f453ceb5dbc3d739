import type { LeftOut, ListedLock } from '../../core/peers/lock-list.js';
import { ageOf, shownMs } from '../age.js';
import type { CommandLine } from '../command-line.js';
import { columns, print, printJson, tell } from '../output.js';
import type { Session } from '../session.js';
import { tableOf, type Column } from '../table.js';

/** For how long the store is searched, in milliseconds. */
const SEARCH_MS = 10_000;

/** Lists the locks that are held, the oldest first. */
export async function list({ locks, store }: Session, { argument, limit, json }: CommandLine): Promise<number> {
  const listing = locks.list({ prefix: argument, limit, searchMs: SEARCH_MS });
  const found: ListedLock[] = [];
  for await (const lock of listing) {
    found.push(lock);
  }
  found.sort((one, other) => one.since.getTime() - other.since.getTime());
  const hint = hintOf(listing.leftOut, limit);
  if (json) {
    found.forEach(({ waitingHere: _own, ...lock }) => printJson(lock));
    if (hint) {
      tell(hint);
    }
    return 0;
  }
  if (found.length === 0) {
    print('No locks are held.');
  } else {
    print(...tableOf(columnsOf(store.messages !== undefined), found, columns()));
  }
  if (hint) {
    print(hint);
  }
  return 0;
}

function columnsOf(hasMessages: boolean): readonly Column<ListedLock>[] {
  return [
    { title: 'KEY', text: ({ key }) => key, kind: 'long' },
    { title: 'HELD BY', text: ({ by }) => by, kind: 'long' },
    { title: 'SINCE', text: ({ since }) => ageOf(since), kind: 'number' },
    { title: 'FENCE', text: ({ fence }) => String(fence), kind: 'number' },
    { title: 'LEASE LEFT', text: ({ remainingMs }) => shownMs(remainingMs), kind: 'number' },
    { title: 'WAITING', text: ({ waiters }) => String(waiters.length), kind: 'number' },
    { title: 'ANSWERS', text: ({ answers }) => (hasMessages ? (answers ? 'yes' : 'no') : '-') },
  ];
}

/** What the list does not have, and how to get it; empty where it is whole. */
function hintOf({ rows, limited, unsearched }: LeftOut, limit: number): string {
  return [
    rows > 0 ? `Processes left out ${rows} locks and calls of their own.` : '',
    limited ? `The list ends at ${limit} locks: pass a higher --limit, or a longer PREFIX.` : '',
    unsearched && !limited ? 'The store was not searched to its end: locks of processes that do not answer may be missing.' : '',
  ]
    .filter(Boolean)
    .join(' ');
}
