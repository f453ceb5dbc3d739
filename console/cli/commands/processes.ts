import type { LockProcess } from '../../../lib/operate/peers/survey.js';
import { silenceOf } from '../absence.js';
import { shownMs } from '../age.js';
import type { CommandLine } from '../command-line.js';
import { columns, print, printJson, remark } from '../output.js';
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
export async function processes(session: Session, line: CommandLine): Promise<number> {
  const [, ...others] = (await session.locks.survey({ health: true })).processes;
  if (line.json) {
    printJson(others);
  } else if (others.length > 0) {
    print(...tableOf(COLUMNS, others, columns()));
  }
  remark(await silenceOf(session, line, others.length), line);
  return 0;
}
