import { incidents } from '../../console/cli/commands/incidents';
import { inspect } from '../../console/cli/commands/inspect';
import { list } from '../../console/cli/commands/list';
import { processes } from '../../console/cli/commands/processes';
import { release } from '../../console/cli/commands/release';
import { top } from '../../console/cli/commands/top';
import { parseCommandLine, type CommandLine } from '../../console/cli/command-line';
import { Session } from '../../console/cli/session';
import { PostgresLockStore } from '../../lib/postgres/postgres-lock-store';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { cli, cliUntil } from '../support/cli';
import { makeLocks } from '../support/make-locks';
import { PgBouncer } from '../support/pgbouncer';
import { PostgresServer } from '../support/postgres-server';
import { RedisServer } from '../support/redis-server';
import { Terminal } from '../support/terminal';
import { until } from '../support/until';

const COMMANDS = { list, inspect, top, incidents, release, processes };
const WORDS: readonly (readonly [keyof typeof COMMANDS, ...string[]])[] = [
  ['list'],
  ['inspect', 'free'],
  ['top'],
  ['incidents'],
  ['processes'],
  ['release', 'free', '--fence', '1', '--yes'],
];
const ASKING = new Set<string>(['top', 'incidents', 'processes']);
const NOBODY = /No process answers/;

let server: RedisServer;
let store: RedisLockStore;
let locks: ReturnType<typeof makeLocks>;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  server = await RedisServer.start();
  env = { LOCKS_REDIS: server.url };
  store = new RedisLockStore(server.url);
  await store.open({ prefix: 'lock', warn: () => undefined });
  locks = makeLocks(store);
});
afterAll(async () => {
  await locks.shutdown();
  await store.close();
  await server.stop();
});

test.each(WORDS.map((words) => [words[0], words] as const))('%s says that the store went away while it asked', async (command, words) => {
  const line = parseCommandLine(words, env) as CommandLine;
  const session = await Session.of(line);
  try {
    await until('a connection', () =>
      session.connect().then(
        () => true,
        () => false,
      ),
    );
    server.pause();
    await expect(COMMANDS[command](session, line)).rejects.toMatchObject({
      code: 'LOCK_STORE',
      detail: expect.stringContaining('did not answer'),
    });
  } finally {
    server.resume();
    await session.close();
  }
});

test('each command says that messages are held up where the server answers what is read', async () => {
  await server.client.client('PAUSE', 600_000, 'WRITE');
  const runs = await Promise.all(WORDS.map(async (words) => ({ command: words[0], ...(await cli(env, words)) })));
  await server.client.client('UNPAUSE');
  for (const { command, code, out, err } of runs) {
    expect(out + err).not.toMatch(NOBODY);
    if (command !== 'release') {
      expect(err).toMatch(/^Processes cannot be asked: Redis did not answer: /);
    }
    if (ASKING.has(command)) {
      expect({ code, out }).toEqual({ code: 3, out: '' });
    }
  }
});

test('top says that the store is away, why and since when, and goes on when it is back', async () => {
  const terminal = await Terminal.start(env, `${process.execPath} dist/esm/cli/main.js top`, 24, 200);
  const status = (): string => terminal.screen.lines[1] ?? '';
  try {
    await until('an answer', () => status().startsWith('1 process answers.'));
    server.pause();
    await until('that the store is away', () => status().startsWith('The store is away since '));
    expect(status()).toMatch(/^The store is away since \d{4}-\d\d-\d\dT[\d:.]+Z \(.*\): Redis did not answer: /);
    const [since] = /\S+Z/.exec(status()) as RegExpExecArray;
    // The time of the first failure stays.
    await until('a later view', () => /\((?:[2-9]|\d\d)[.\d]* s\)/.test(status()));
    expect(status()).toContain(since);
    server.resume();
    await until('that it is back', () => status().startsWith('1 process answers.'));
  } finally {
    server.resume();
    await terminal.stop();
  }
});

test('processes that cannot be heard through a pooler are not said to be missing', async () => {
  const database = await PostgresServer.start();
  const bouncer = await PgBouncer.start(database);
  try {
    await new PostgresLockStore(database.pool()).ensureSchema();
    for (const command of ['top', 'incidents', 'processes']) {
      const { code, out } = await cliUntil({ LOCKS_POSTGRES: bouncer.url }, [command], ({ err }) =>
        /^Processes cannot be asked: No NOTIFY arrives\./.test(err),
      );
      expect({ code, out }).toEqual({ code: 3, out: '' });
    }
  } finally {
    await bouncer.stop();
    await database.stop();
  }
});
