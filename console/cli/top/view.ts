import type { ListedLock } from '../../../lib/operate/peers/lock-list.js';
import { nobodyAnswers } from '../absence.js';
import type { CommandLine } from '../command-line.js';
import type { Session } from '../session.js';
import { snapshotOf, storedSnapshotOf, type Snapshot } from './snapshot.js';

/** The most locks that are searched for, and for how long, in milliseconds. */
const MOST = 1_000;
const SEARCH_MS = 2_000;

/** The facts that were learnt at one time. */
export interface View {
  /** How many processes have answered; none where they are not asked. */
  readonly processes: number;
  /** The line about the parts that are shown, and those that are not. */
  readonly status: string;
  /** Of the locks whose keys contain the text. */
  readonly snapshot: (filter: string) => Snapshot;
}

/** Asks the processes; searches the store instead where it carries no messages. Rejects where the store is away. */
export function viewOf(session: Session, line: CommandLine): Promise<View> {
  return session.store.messages ? askProcesses(session, line) : searchStore(session.locks, line);
}

async function askProcesses(session: Session, line: CommandLine): Promise<View> {
  const survey = await session.locks.survey({});
  const processes = survey.processes.length - 1;
  if (processes === 0) {
    await session.checkHearing();
  }
  const all = `${processes} ${processes === 1 ? 'process answers' : 'processes answer'}. The locks of those that do not are in: list.`;
  const leftOut = survey.leftOut > 0 ? ` Processes left out ${survey.leftOut} locks and calls of their own.` : '';
  const status = processes === 0 ? nobodyAnswers(line) : `${all}${leftOut}`;
  return { processes, status, snapshot: (filter) => snapshotOf(survey, filter) };
}

async function searchStore(locks: Session['locks'], line: CommandLine): Promise<View> {
  const listing = locks.list({ prefix: '', limit: MOST, searchMs: SEARCH_MS });
  /** A lock that is found again has a later fence. */
  const byKey = new Map<string, ListedLock>();
  for await (const lock of listing) {
    byKey.set(lock.key, lock);
  }
  const found = [...byKey.values()];
  const now = Date.now();
  const { limited, unsearched } = listing.leftOut;
  const part = limited ? ` Shown are ${MOST} locks.` : unsearched ? ' The search did not come to its end.' : '';
  const status = found.length === 0 ? `No locks are held. ${nobodyAnswers(line)}` : `The locks are those of the store.${part}`;
  return { processes: 0, status, snapshot: (filter) => storedSnapshotOf(found, now, filter) };
}
