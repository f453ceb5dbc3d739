import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLockError } from '../../../lib/core/words/errors.js';
import { printable } from '../../../lib/core/words/shown.js';
import { ageOf } from '../age.js';
import type { CommandLine } from '../command-line.js';
import { columns, print, printJson, remark } from '../output.js';
import type { Session } from '../session.js';
import { wrapped } from '../table.js';
import { layoutOf } from '../top/layout.js';
import { Screen } from '../top/screen.js';
import { Scroll } from '../top/scroll.js';
import { linesOf, sectionsOf } from '../top/sections.js';
import { firstRows } from '../top/snapshot.js';
import { TopKeys } from '../top/top-keys.js';
import { viewOf, type View } from '../top/view.js';

const REPAINT_MS = 1_000;
/** The rows of a table where there is no screen to fill. */
const ROWS = 10;

/**
 * Shows the oldest locks and those that are most waited for: each second until `q` is pressed, or once where there is
 * no terminal.
 */
export async function top(session: Session, line: CommandLine): Promise<number> {
  if (!line.json && process.stdout.isTTY && process.stdin.isTTY) {
    await watch(() => viewOf(session, line));
    return 0;
  }
  const { snapshot, status, processes } = await viewOf(session, line);
  const shown = snapshot('');
  if (line.json) {
    printJson(firstRows(shown, ROWS));
    remark(processes > 0 || shown.oldest.length > 0 ? undefined : status, line);
  } else {
    const sections = sectionsOf(shown);
    const rows = sections.map(() => ROWS);
    print(printable(status), '', ...linesOf(sections, rows, 0, columns()));
  }
  return 0;
}

async function watch(ask: () => Promise<View>): Promise<void> {
  let view: View | undefined;
  const ended = new AbortController();
  const quit = (): void => ended.abort();
  const scroll = new Scroll();
  const keys = new TopKeys(quit, scroll);
  // The terminal is to be as it was.
  process.once('SIGINT', quit).once('SIGTERM', quit).once('SIGHUP', quit);
  process.stdout.once('error', quit);
  const screen = new Screen((key) => {
    keys.press(key);
    paint();
  }, paint);
  function paint(): void {
    if (view) {
      const { width, height } = screen;
      const head = [printable(keys.line), ...wrapped(printable(view.status), width), ''];
      const sections = sectionsOf(view.snapshot(keys.filter));
      const { rows, last, page } = layoutOf(
        sections.map(({ count }) => count),
        height - head.length,
      );
      screen.paint([...head, ...linesOf(sections, rows, scroll.fit(last, page), width)]);
    }
  }
  try {
    const over = once(ended.signal, 'abort');
    let failingSince: Date | undefined;
    while (!ended.signal.aborted) {
      const askedAt = new Date();
      const asked = ask().then(
        (answer) => {
          failingSince = undefined;
          return answer;
        },
        (error: unknown) => stale(view, error, (failingSince ??= askedAt)),
      );
      view = (await Promise.race([asked, over.then(() => undefined)])) ?? view;
      paint();
      await Promise.race([sleep(REPAINT_MS), over]);
    }
  } finally {
    screen.close();
  }
}

/** The view as it was, with the reason why there is no later one, and since when; an outage may be over soon. */
function stale(view: View | undefined, error: unknown, since: Date): View {
  if (!view || !isLockError(error)) {
    throw error;
  }
  const what = error.code === 'LOCK_STORE' ? 'The store is away' : 'Nothing new';
  return { ...view, status: `${what} since ${since.toISOString()} (${ageOf(since)}): ${error.detail}` };
}
