import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { printable } from '../../../lib/core/words/shown.js';
import type { Survey } from '../../../lib/peers/survey.js';
import { nobodyAnswers } from '../absence.js';
import type { CommandLine } from '../command-line.js';
import { columns, print, printJson, remark } from '../output.js';
import type { Session } from '../session.js';
import { wrapped } from '../table.js';
import { layoutOf } from '../top/layout.js';
import { Screen } from '../top/screen.js';
import { Scroll } from '../top/scroll.js';
import { linesOf, sectionsOf } from '../top/sections.js';
import { firstRows, snapshotOf } from '../top/snapshot.js';
import { TopKeys } from '../top/top-keys.js';

const REPAINT_MS = 1_000;
/** The rows of a table where there is no screen to fill. */
const ROWS = 10;

/** Shows the oldest locks and the longest queues each second until `q` is pressed; once where there is no terminal. */
export async function top({ locks }: Session, line: CommandLine): Promise<number> {
  if (!line.json && process.stdout.isTTY && process.stdin.isTTY) {
    await watch(() => locks.survey({}), line);
    return 0;
  }
  const survey = await locks.survey({});
  const snapshot = snapshotOf(survey, '');
  if (line.json) {
    printJson(firstRows(snapshot, ROWS));
    remark(snapshot.processes > 0 ? undefined : statusOf(survey, line), line);
  } else {
    const sections = sectionsOf(snapshot);
    const rows = sections.map(() => ROWS);
    print(printable(statusOf(survey, line)), '', ...linesOf(sections, rows, 0, columns()));
  }
  return 0;
}

/** How many processes answer, and what is not shown. */
function statusOf({ processes, leftOut }: Survey, line: CommandLine): string {
  const others = processes.length - 1;
  if (others === 0) {
    return nobodyAnswers(line);
  }
  const all = `${others} ${others === 1 ? 'process answers' : 'processes answer'}. The locks of those that do not are in: list.`;
  return leftOut > 0 ? `${all} Processes left out ${leftOut} locks and calls of their own.` : all;
}

async function watch(ask: () => Promise<Survey>, line: CommandLine): Promise<void> {
  let survey: Survey | undefined;
  const ended = new AbortController();
  const quit = (): void => ended.abort();
  const scroll = new Scroll();
  const keys = new TopKeys(quit, scroll);
  // The terminal is to be as it was.
  process.once('SIGTERM', quit).once('SIGHUP', quit);
  const screen = new Screen((key) => {
    keys.press(key);
    paint();
  }, paint);
  function paint(): void {
    if (survey) {
      const { width, height } = screen;
      const head = [printable(keys.line), ...wrapped(printable(statusOf(survey, line)), width), ''];
      const sections = sectionsOf(snapshotOf(survey, keys.filter));
      const { rows, last, page } = layoutOf(
        sections.map(({ count }) => count),
        height - head.length,
      );
      screen.paint([...head, ...linesOf(sections, rows, scroll.fit(last, page), width)]);
    }
  }
  try {
    const over = once(ended.signal, 'abort');
    while (!ended.signal.aborted) {
      survey = (await Promise.race([ask(), over.then(() => undefined)])) ?? survey;
      paint();
      await Promise.race([sleep(REPAINT_MS), over]);
    }
  } finally {
    screen.close();
  }
}
