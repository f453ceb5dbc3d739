import { controlOf } from './checks/registers.js';
import type { Evidence } from './checks/check.js';
import { timesFull } from './checks/permits.js';
import { isPermit, isReader, type Entry } from './entry.js';
import type { FaultName } from './faults.js';
import type { Step } from './plan.js';

/** Grants a second that a run has at least, whatever strikes it. */
const GRANTS = 4;
/** Which part of the faults may fail, or be left out. */
const FAILED = 0.2;

/** Why a run shows nothing, though no check has failed. */
export function weaknessesOf(
  { entries, faults, ...evidence }: Evidence,
  plan: readonly Step[],
  seconds: number,
  asked: readonly FaultName[] = [],
): string[] {
  const control = controlOf({ entries, faults, ...evidence });
  const grants = entries.filter(({ op, enteredAt }) => op === 'acquire' && enteredAt !== undefined).length;
  const pauses = faults.all.filter(({ fault }) => fault === 'pause').length;
  const { leftOut } = faults;
  const failed = faults.all.filter(({ outcome }) => outcome === 'failed').length;
  const absent = asked.filter((fault) => !plan.some((step) => step.fault === fault));
  const names = plan.map(({ fault }) => fault);
  const over = [...faults.all.map(({ fault }) => fault), ...leftOut];
  const missing = [...new Set(names)].reduce((sum, name) => sum + Math.max(0, count(names, name) - count(over, name)), 0);
  return [
    grants < GRANTS * seconds && `${grants} grants in ${seconds} s are too few`,
    pauses > 0 && control.lost === 0 && `none of ${control.of} updates without a fence was lost, in spite of ${pauses} pauses`,
    failed + leftOut.length > FAILED * plan.length &&
      `${failed} of ${plan.length} faults failed, and ${leftOut.length} were left out, because those before them took too long`,
    entries.some(isReader) && !haveMet(entries.filter(isReader)) && 'no readers of two processes were in a key together',
    entries.some(isPermit) && timesFull({ entries, faults, ...evidence }) === 0 && 'no semaphore was ever full',
    missing > 0 && `${missing} of ${plan.length} faults were never over`,
    absent.length > 0 && `${absent.join(', ')} never struck`,
  ].filter((why) => why !== false);
}

/** Whether readers of two processes came in beside each other: they have one fence. */
function haveMet(readers: readonly Entry[]): boolean {
  const processes = new Map<string, string>();
  return readers.some(({ key, fence, process }) => {
    const name = `${key} ${fence}`;
    const first = processes.get(name) ?? process;
    processes.set(name, first);
    return fence !== undefined && first !== process;
  });
}

function count(faults: readonly FaultName[], name: FaultName): number {
  return faults.filter((fault) => fault === name).length;
}
