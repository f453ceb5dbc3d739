import type { StoredLock } from '../../../lib/core/seam/lock-store.js';
import { calledAs } from '../../../lib/core/words/description.js';
import type { WaitingCall } from '../../../lib/operate/peers/survey.js';
import { printable, sharing } from '../../../lib/core/words/shown.js';
import { absenceOf } from '../absence.js';
import { ageOf, shownMs } from '../age.js';
import type { CommandLine } from '../command-line.js';
import { print, printJson, remark } from '../output.js';
import type { Session } from '../session.js';

/** Shows one lock; 1 where nobody holds it. */
export async function inspect(session: Session, line: CommandLine): Promise<number> {
  const { locks } = session;
  const { argument: key, json } = line;
  const [lock, { waiting }] = await Promise.all([locks.inspect(key), locks.survey({})]);
  const calls = waiting.filter((call) => call.key === key).toSorted((one, other) => other.waitedMs - one.waitedMs);
  if (json) {
    printJson(lock && documentOf(key, lock, calls));
  } else {
    print(...(lock ? linesOf(key, lock, calls) : [`Nobody holds "${key}".`]).map(printable));
  }
  remark(lock ? undefined : await absenceOf(session, line), line);
  return lock ? 0 : 1;
}

function documentOf(
  key: string,
  { by, since, fence, remainingMs, holds, shares, processes, waiters }: StoredLock,
  calls: readonly WaitingCall[],
): object {
  return {
    key,
    by,
    since,
    fence,
    remainingMs,
    holds,
    shares,
    processes,
    waiters,
    calls: calls.map(({ name, site, description, process, waitedMs, leftMs, shares: wanted }) => ({
      ...{ name, site, description, process, waitedMs, leftMs },
      shares: wanted,
    })),
  };
}

function linesOf(key: string, lock: StoredLock, calls: readonly WaitingCall[]): string[] {
  const { by, since, fence, remainingMs, holds, shares, processes = [], waiters } = lock;
  return [
    `Key         ${key}`,
    `Held by     ${by}${shares !== undefined && holds > 1 ? `, and ${counted(holds - 1, 'other', 'others')}` : ''}`,
    `Since       ${since.toISOString()} (${ageOf(since)})`,
    `Fence       ${fence}`,
    `Lease left  ${shownMs(remainingMs)}`,
    `Holds       ${shares === undefined ? holds : sharing(shares, holds)}`,
    ...processes.map((process) => `Process     ${process}`),
    `Queued      ${counted(waiters.length, 'process', 'processes')}${waiters.length > 0 ? ', in order:' : ''}`,
    ...waiters.map((waiter, at) => `  ${at + 1}. ${waiter}`),
    `Waiting     ${counted(calls.length, 'call', 'calls')}${calls.length > 0 ? ', as their processes say:' : ''}`,
    ...calls.map(
      ({ process, waitedMs, leftMs, shares: wanted, ...call }) =>
        `  ${calledAs(call)} in ${process}${wanted === undefined ? '' : wanted === 'read' ? ', to read' : ', for a permit'}, for ${shownMs(waitedMs)}, at most ${shownMs(leftMs)} more`,
    ),
  ];
}

function counted(count: number, one: string, several: string): string {
  return `${count} ${count === 1 ? one : several}`;
}
