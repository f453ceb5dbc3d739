import type { LockProcess } from '../../../lib/peers/survey.js';
import { shownMs } from '../age.js';
import type { CommandLine } from '../command-line.js';
import { columns, print, printJson } from '../output.js';
import type { Session } from '../session.js';
import { tableOf, type Column } from '../table.js';

const COLUMNS: readonly Column<LockProcess>[] = [
  { title: 'HOST', text: ({ host }) => host, kind: 'long' },
  { title: 'PID', text: ({ pid }) => String(pid), kind: 'number' },
  { title: 'VERSION', text: ({ version }) => version },
  { title: 'UP', text: ({ upMs }) => shownMs(upMs), kind: 'number' },
  { title: 'HELD', text: ({ held }) => String(held), kind: 'number' },
  { title: 'WAITING', text: ({ waiting }) => String(waiting), kind: 'number' },
  { title: 'HEALTH', text: ({ health }) => (health ? [health.status, ...health.reasons].join(' ') : '-') },
];

/** Lists the processes that answer, without this one. */
export async function processes({ locks }: Session, { json }: CommandLine): Promise<number> {
  const [, ...others] = (await locks.survey({ health: true })).processes;
  if (json) {
    printJson(others);
  } else if (others.length > 0) {
    print(...tableOf(COLUMNS, others, columns()));
  } else {
    print('No process answers.');
  }
  return 0;
}
