import { parseDuration } from '../../../lib/core/words/duration.js';
import { calledAs } from '../../../lib/core/words/description.js';
import { LockConfigurationError } from '../../../lib/core/words/errors.js';
import { withTimes } from '../../../lib/operate/peers/incident-log.js';
import type { LockIncident } from '../../../lib/operate/peers/survey.js';
import { silenceOf } from '../absence.js';
import { shownMs } from '../age.js';
import type { CommandLine } from '../command-line.js';
import { columns, print, printJson, remark } from '../output.js';
import type { Session } from '../session.js';
import { tableOf, type Column } from '../table.js';
import { WrongUse } from '../wrong-use.js';

const COLUMNS: readonly Column<LockIncident>[] = [
  { title: 'WHEN', text: ({ at }) => at.toISOString() },
  { title: 'WHAT', text: whatOf, kind: 'long' },
  { title: 'TIMES', text: ({ count }) => String(count), kind: 'number' },
  { title: 'KEY', text: ({ key }) => key || '-', kind: 'long' },
  { title: 'CALL', text: calledAs, kind: 'long' },
  { title: 'PROCESS', text: ({ process }) => process.replace(/#.*$/, ''), kind: 'long' },
  { title: 'LASTED', text: ({ lastedMs }) => (lastedMs === undefined ? '-' : shownMs(lastedMs)), kind: 'number' },
];

function whatOf({ type, reason, forcedBy }: LockIncident): string {
  const by = forcedBy?.by ? ` by ${forcedBy.by}` : '';
  return `${reason ? `${type}: ${reason}` : type}${by}${forcedBy?.reason ? ` (${forcedBy.reason})` : ''}`;
}

/** Lists what went wrong lately in the processes that answer, the last one first. */
export async function incidents(session: Session, line: CommandLine): Promise<number> {
  const { argument: prefix, since, json } = line;
  const askedAt = Date.now();
  const survey = await session.locks.survey({ incidentsMs: msOf(since) });
  const own = survey.processes[0]?.id;
  const rows = withTimes(survey.incidents, askedAt).filter(({ process, key }) => process !== own && key.startsWith(prefix));
  const silence = await silenceOf(session, line, survey.processes.length - 1);
  if (json) {
    rows.forEach(printJson);
  } else if (rows.length > 0) {
    print(...tableOf(COLUMNS, rows, columns()));
  } else if (silence === undefined) {
    print(`Nothing went wrong within ${since}, as far as the processes know that answer.`);
  }
  remark(silence, line);
  return 0;
}

function msOf(since: string): number {
  try {
    return parseDuration(since, '--since', 1, 'incidents');
  } catch (error) {
    throw error instanceof LockConfigurationError ? new WrongUse(error.detail, { cause: error }) : error;
  }
}
