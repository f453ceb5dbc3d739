import { formatAmount } from '../money/amount.js';
import type { Round } from './round.js';
import { ADDED, INITIAL } from './task.js';
import type { Team } from './team.js';
import { drawTimeline } from './timeline.js';
import { judge, type Verdict } from './verdict.js';

/** What is about to happen. */
export function describePlan({ members }: Team, tasks: number, workMs: number, where: string): string {
  const processes = members.map(({ name, pid }) => `${name} (pid ${pid})`).join(' and ');
  return `
${tasks} tasks each add ${money(ADDED)} to one balance of ${money(INITIAL)}: read it, work for ${workMs} ms, write it back.
They run in ${members.length === 1 ? 'one process' : `${members.length} processes`}, ${processes}.
The balance and the locks are in ${where}.
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

export function describeLocked(round: Round): string {
  const verdict = judge(round);
  return `
WITH THE LOCK: the same method under @DistributedLock({ key: 'demo:<account>', … })

${drawTimeline(round.records)}

  ${describeOverlap(verdict)}
  ${describeBalance(round, verdict)}

  They arrived in the order  ${verdict.arrived.join(' ')}
  and ran in the order       ${verdict.ran.join(' ')}
  ${describeOrder(verdict)}`;
}

function describeOverlap({ mostAtOnce }: Verdict): string {
  return mostAtOnce === 1 ? 'They ran one after the other.' : `They overlapped: up to ${mostAtOnce} ran at the same time.`;
}

function describeBalance({ records, balance }: Round, { expected, lost }: Verdict): string {
  return lost === 0
    ? `The balance is ${money(balance)}, as it should be: no update was lost.`
    : `The balance is ${money(balance)} and should be ${money(expected)}: ${lost} of ${records.length} updates were lost.`;
}

/** What is said here was measured. */
function describeOrder({ inOrder, inOrderWithin }: Verdict): string {
  if (inOrder) {
    return `The two are the same${inOrderWithin.size > 1 ? ', also between the processes' : ''}.`;
  }
  const within = [...inOrderWithin].map(([name, kept]) => `${name}: ${kept ? 'yes' : 'no'}`).join(', ');
  return `The two differ: a process that has its turn serves up to 16 of its own calls before the next process.
  Was the order of arrival kept within each process? ${within}.`;
}

function money(hundredths: number): string {
  return formatAmount(BigInt(hundredths));
}
