import { layoutOf } from '../../console/cli/top/layout';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { cliUntil } from '../support/cli';
import { makeLocks } from '../support/make-locks';
import { RedisServer } from '../support/redis-server';
import { Terminal } from '../support/terminal';
import { until } from '../support/until';

const PROGRAM = `${process.execPath} dist/esm/cli/main.js top`;
const LOCKS = 60;

let server: RedisServer;
let store: RedisLockStore;
let locks: ReturnType<typeof makeLocks>;

beforeAll(async () => {
  server = await RedisServer.start();
  store = new RedisLockStore(server.url);
  await store.open({ prefix: 'lock', warn: () => undefined });
  locks = makeLocks(store);
  for (let at = 1; at <= LOCKS; at++) {
    await locks.acquire(`job:${String(at).padStart(2, '0')}`, { by: 'Jobs.run', ttl: 600_000 });
  }
});
afterAll(async () => {
  await locks.shutdown();
  await store.close();
  await server.stop();
});

async function withTop(env: NodeJS.ProcessEnv, rows: number, columns: number, use: (terminal: Terminal) => Promise<void>): Promise<void> {
  const terminal = await Terminal.start(env, PROGRAM, rows, columns);
  try {
    await use(terminal);
  } finally {
    await terminal.stop();
  }
}

async function shows(terminal: Terminal, ...lines: readonly string[]): Promise<void> {
  await until(`${lines.join(' and ')} on the screen`, () => lines.every((line) => terminal.screen.lines.includes(line))).catch(
    (error: Error) => {
      throw new Error(`${error.message}; it shows:\n${terminal.screen.lines.join('\n')}`, { cause: error });
    },
  );
}

const keysIn = ({ screen }: Terminal): string[] => screen.lines.flatMap((line) => /^job:\d\d/.exec(line)?.[0] ?? []);

test('top fills the screen, and its keys scroll', async () => {
  await withTop({ LOCKS_REDIS: server.url }, 30, 100, async (terminal) => {
    await shows(terminal, 'OLDEST LOCKS, 1 to 19 of 60', 'MOST WAITED FOR');
    expect(terminal.screen.lines[0]).toBe('q: quit, /: filter, arrows, PgUp, PgDn, Home, End: scroll');
    expect(terminal.screen.lines[1]).toMatch(/^1 process answers\./);
    expect(terminal.screen.lines.at(-1)).toBe('none');
    expect(keysIn(terminal)).toHaveLength(19);
    for (const [keys, shown] of [
      ['\u001b[B', '2 to 20'],
      ['\u001bOB', '3 to 21'],
      ['\u001b[6~', '22 to 40'],
      ['\u001b[F', '42 to 60'],
      ['\u001b[6~', '42 to 60'],
      ['\u001b[A', '41 to 59'],
      ['\u001b[5~', '22 to 40'],
      ['\u001b[H', '1 to 19'],
      ['\u001b[A', '1 to 19'],
      ['/job:3\r', '1 to 10 of 10'],
    ]) {
      terminal.type(keys as string);
      await shows(terminal, `OLDEST LOCKS, ${shown}${shown?.includes('of') ? '' : ' of 60'}`);
    }
    expect(keysIn(terminal)).toEqual(Array.from({ length: 10 }, (_, at) => `job:3${at}`));
    // The keys may come one by one.
    await until('the end of the filter', () => terminal.screen.lines[0]?.includes('(now "job:3")') === true);
    terminal.type('q');
    await until('the end', () => terminal.exitCode !== null);
    expect(terminal.exitCode).toBe(0);
    // The screen of before is back, with its cursor.
    expect(terminal.said.endsWith('\u001b[?7h\u001b[?25h\u001b[?1049l')).toBe(true);
    expect(terminal.screen.scrolled).toBe(0);
    // Nobody sees half of a screen.
    const updates = terminal.said.split('\u001b[?2026h').slice(1);
    expect(updates.length).toBeGreaterThan(4);
    expect(updates.filter((update) => !update.includes('\u001b[?2026l'))).toEqual([]);
  });
});

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('top leaves the terminal as it was where %s ends it', async (signal) => {
  const terminal = await Terminal.start({ LOCKS_REDIS: server.url }, `echo "pid=$$"; exec ${PROGRAM}`);
  try {
    await until('that it shows locks', () => keysIn(terminal).length > 0);
    process.kill(Number(/pid=(\d+)/.exec(terminal.said)?.[1]), signal);
    await until('the end', () => terminal.said.endsWith('\u001b[?7h\u001b[?25h\u001b[?1049l'));
  } finally {
    await terminal.stop();
  }
});

test('top fits a terminal that is resized, as small as it may be', async () => {
  await withTop({ LOCKS_REDIS: server.url }, 24, 80, async (terminal) => {
    await shows(terminal, 'OLDEST LOCKS, 1 to 13 of 60');
    terminal.resize(12, 40);
    await shows(terminal, 'OLDEST LOCKS, 1 to 3 of 60', 'that do not are in: list.');
    // A line that is as wide as the screen keeps its end.
    expect(terminal.screen.lines[0]).toMatch(/^q: quit.*….*scroll$/);
    terminal.resize(60, 120);
    await shows(terminal, 'OLDEST LOCKS, 1 to 49 of 60');
    terminal.type('\u001b[F');
    await shows(terminal, 'OLDEST LOCKS, 12 to 60 of 60');
    expect(keysIn(terminal)).toHaveLength(49);
    terminal.resize(4, 9);
    await until('a small screen', () => terminal.screen.lines[1] === '1 process');
    terminal.resize(24, 80);
    await shows(terminal, 'OLDEST LOCKS, 12 to 24 of 60');
    // The screen for the size of before may have been painted after the new one.
    const before = terminal.screen.scrolled;
    terminal.type('\u001b[H');
    await shows(terminal, 'OLDEST LOCKS, 1 to 13 of 60');
    expect(terminal.screen.scrolled).toBe(before);
    expect(terminal.exitCode).toBeNull();
  });
});

test('top says that nobody answers at a prefix, in lines that fit', async () => {
  const env = { LOCKS_REDIS: server.url };
  await cliUntil(env, ['top', '--prefix', 'jobs'], ({ out }) => out.startsWith('No process answers at the prefix "jobs". An application'));
  await cliUntil(env, ['top', '--prefix', 'jobs', '--json'], ({ out, err }) => out.startsWith('{') && err.startsWith('No process answers'));
  const terminal = await Terminal.start(env, `${PROGRAM} --prefix jobs`, 24, 60);
  try {
    await until('what it says', () => terminal.screen.lines[1]?.startsWith('No process answers at the prefix "jobs".') === true);
    const said = terminal.screen.lines.slice(1, terminal.screen.lines.indexOf('')).join(' ');
    expect(said).toMatch(/\(pass --prefix\), another server or database number, or an older version of this library\.$/);
  } finally {
    await terminal.stop();
  }
});

test.each([
  [[60, 0, 0], 27, [19, 0, 0]],
  [[60, 60, 60], 27, [6, 6, 7]],
  [[2, 60, 60], 27, [2, 8, 9]],
  [[60, 1, 2], 27, [16, 1, 2]],
  [[1, 1, 1], 27, [1, 1, 1]],
  [[60, 60, 60], 11, [1, 1, 1]],
  [[60, 60, 60], 10, [2, 3]],
  [[60, 60, 60], 6, [4]],
  [[60, 60, 60], 1, [1]],
])('tables of %j rows share %d lines as %j', (counts, height, rows) => {
  expect(layoutOf(counts, height).rows).toEqual(rows);
});
