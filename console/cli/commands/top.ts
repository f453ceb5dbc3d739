import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { printable } from '../../../lib/core/words/shown.js';
import type { Survey } from '../../../lib/peers/survey.js';
import type { CommandLine } from '../command-line.js';
import { columns, print, printJson } from '../output.js';
import { Screen } from '../screen.js';
import type { Session } from '../session.js';
import { TopKeys } from '../top-keys.js';
import { linesOf, snapshotOf } from './snapshot.js';

const REPAINT_MS = 1_000;
/** The rows of a table where there is no screen to fit. */
const ROWS = 10;
/** The tables of a snapshot, and its lines besides their rows, with that of the keys. */
const LAYOUT = { tables: 3, otherLines: 13 } as const;

/** Shows the oldest locks and the longest queues each second until `q` is pressed; once where there is no terminal. */
export async function top({ locks }: Session, { json }: CommandLine): Promise<number> {
  if (json) {
    printJson(snapshotOf(await locks.survey({}), '', ROWS));
  } else if (process.stdout.isTTY && process.stdin.isTTY) {
    await watch(() => locks.survey({}));
  } else {
    print(...linesOf(snapshotOf(await locks.survey({}), '', ROWS), columns()));
  }
  return 0;
}

async function watch(ask: () => Promise<Survey>): Promise<void> {
  let survey: Survey | undefined;
  const ended = new AbortController();
  const quit = (): void => ended.abort();
  const keys = new TopKeys(quit);
  // The terminal is to be as it was.
  process.once('SIGTERM', quit).once('SIGHUP', quit);
  const screen = new Screen((key) => {
    keys.press(key);
    paint();
  });
  function paint(): void {
    if (survey) {
      const rows = screen.rowsOf(LAYOUT.tables, LAYOUT.otherLines);
      screen.paint([printable(keys.line), ...linesOf(snapshotOf(survey, keys.filter, rows), screen.width)]);
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
