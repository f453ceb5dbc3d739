import { formatAmount } from '../money/amount.js';
import type { Round } from './round.js';
import { ADDED, INITIAL, PERMITS, type TaskRecord } from './task.js';
import type { Team } from './team.js';
import { drawCounted, drawTimeline } from './timeline.js';
import { courseOf, judge, type Course, type Verdict } from './verdict.js';

/** How much there is to do, and where. */
export interface Plan {
  readonly tasks: number;
  readonly workMs: number;
  readonly balance: string;
  readonly locks: string;
}

/** The plan of the demo in words. */
export function describePlan({ members }: Team, { tasks, workMs, balance, locks }: Plan): string {
  const processes = members.map(({ name, pid }) => `${name} (pid ${pid})`).join(' and ');
  return `
${tasks} tasks each add ${money(ADDED)} to one balance of ${money(INITIAL)}: read it, work for ${workMs} ms, write it back.
They run in ${members.length === 1 ? 'one process' : `${members.length} processes`}, ${processes}.
The balance is in ${balance}.
The locks are in ${locks}.
In the pictures, a dot is a task that waits and # is a task that runs.`;
}

export function describeUnlocked(round: Round): string {
  const verdict = judge(round);
  return `
WITHOUT THE LOCK

${drawTimeline(round.records)}

  ${describeOverlap(verdict)}
  ${describeBalance(round, verdict)}`;
}

/** `keepsOrder`: whether the store promises anything of the order between processes. */
export function describeLocked(round: Round, keepsOrder: boolean): string {
  const verdict = judge(round);
  return `
WITH THE LOCK: the same method under @DistributedLock({ key: 'demo:<account>', … })

${drawTimeline(round.records)}

  ${describeOverlap(verdict)}
  ${describeBalance(round, verdict)}

${describeQueue(verdict, keepsOrder)}`;
}

export function describeLimited(records: readonly TaskRecord[]): string {
  const course = courseOf(records);
  return `
WITH ${PERMITS} PERMITS: tasks that call a service, under @DistributedSemaphore({ key: …, permits: ${PERMITS} })

${drawCounted(records)}

  At most ${course.mostAtOnce} ran at the same time.

${describeQueue(course, true)}`;
}

/** For a store that has none. */
export const NO_SEMAPHORE = `
WITH ${PERMITS} PERMITS there is no picture here: Redis, PostgreSQL and memory give permits.`;

function describeQueue(course: Course, keepsOrder: boolean): string {
  return `  They arrived in the order  ${course.arrived.join(' ')}
  and ran in the order       ${course.ran.join(' ')}
  ${describeOrder(course, keepsOrder)}`;
}

function describeOverlap({ mostAtOnce }: Verdict): string {
  return mostAtOnce === 1 ? 'They ran one after the other.' : `They overlapped: up to ${mostAtOnce} ran at the same time.`;
}

function describeBalance({ records, balance }: Round, { expected, lost }: Verdict): string {
  return lost === 0
    ? `The balance is ${money(balance)}, as it should be: no update was lost.`
    : `The balance is ${money(balance)} and should be ${money(expected)}: ${lost} of ${records.length} updates were lost.`;
}

/** The order of the tasks in words. Each sentence was measured. */
function describeOrder({ inOrder, inOrderWithin }: Course, keepsOrder: boolean): string {
  const isShared = inOrderWithin.size > 1;
  if (inOrder && isShared && !keepsOrder) {
    return 'The two are the same this time; a quorum keeps no order between processes.';
  }
  if (inOrder) {
    return `The two are the same${isShared ? ', also between the processes' : ''}.`;
  }
  const within = [...inOrderWithin].map(([name, kept]) => `${name}: ${kept ? 'yes' : 'no'}`).join(', ');
  const why = keepsOrder
    ? 'a process that has its turn serves up to 16 of its own calls before others.'
    : 'a quorum keeps no order between processes, and whoever asks first has it.';
  return `The two differ: ${why}
  Was the order of arrival kept within each process? ${within}.`;
}

function money(hundredths: number): string {
  return formatAmount(BigInt(hundredths));
}
