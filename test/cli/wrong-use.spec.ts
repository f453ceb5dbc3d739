import { parseCommandLine } from '../../console/cli/command-line';
import { WrongUse } from '../../console/cli/wrong-use';
import { cli } from '../support/cli';

const REDIS = ['--redis', 'redis://localhost'];

test.each([
  [[], 'There is no command'],
  [['redis://:secret@host'], 'There is no such command'],
  [['list'], 'There is no store'],
  [['list', ...REDIS, '--postgres', 'postgres://host'], 'There is more than one store'],
  [['list', '--postgres', 'host:secret'], '--postgres takes a URL'],
  [['list', '--redis', 'redis://a,redis://b'], '--redis takes one URL. Pass the nodes of a Cluster to --redis-cluster'],
  [['list', '--redis-cluster', 'mysql://a:secret@b/c'], "--redis-cluster takes a URL such as 'redis://host:6379'"],
  [['list', '--redis-cluster', 'redis://a,rediss://b'], '--redis-cluster: all URLs need the same scheme'],
  [['list', '--redis-cluster', 'redis://:secret@a,redis://b'], '--redis-cluster: all URLs need the same scheme'],
  [['list', '--redis-sentinel', 'redis://a'], '--redis-sentinel needs --master NAME (or LOCKS_MASTER)'],
  [['list', '--master', 'a', ...REDIS], '--master is the name of a master that Sentinels watch. Pass their URLs to --redis-sentinel.'],
  [['list', '--schema', 'locks', ...REDIS], '--schema is for PostgreSQL, and --redis has none.'],
  [['list', '--schema', 'locks', '--mysql', 'mysql://a/b'], '--schema is for PostgreSQL, and --mysql has none.'],
  [
    ['list', '--redis', 'redis://:secret@a'],
    '--redis: others on this machine can read the password in the URL. Pass the URL in LOCKS_REDIS,',
  ],
  [['list', '--postgres', 'postgres://a/b?password=secret'], '--postgres: others on this machine can read the password in the URL.'],
  [['list', '--redis', 'redis://:secret@a', '--redis', 'redis://:secret@b'], 'list takes --redis once'],
  [['release', 'key', '--fence', '1', '--fence', '2', ...REDIS], 'release takes --fence once'],
  [['list', '--mysql', 'mysql://secret@host'], "--mysql takes a URL such as 'mysql://user@host/database'"],
  [['list', '--quorum', 'redis://a,redis://a,redis://b'], '--quorum has the same URL twice'],
  [['list', '--redis', 'redis://u:%zz-secret@host'], '--redis: the URL cannot be read.'],
  [['list', '--ca', 'a.pem', ...REDIS], '--ca is for TLS, which redis:// does not use. Write rediss:// in the URLs of --redis.'],
  [['list', '--cert', 'a.pem', '--redis', 'rediss://a'], '--cert needs --key FILE'],
  [['list', '--key', 'a.pem', '--redis', 'rediss://a'], '--key needs --cert FILE'],
  [['list', '--ca', '/no/such.pem', '--redis', 'rediss://a'], '--ca: the file cannot be read: ENOENT'],
  [['list', '--ca', 'package.json', '--mysql', 'mysql://a/b'], '--ca: the file has no certificate as PEM'],
  [['list', '--ca', 'a.pem', '--postgres', 'postgres://a/b?sslmode=disable'], '--ca is for TLS, which sslmode=disable forbids'],
  [['list', '--redis', 'redis://:secret@host:99999'], '--redis: the port 99999 is out of range.'],
  [
    ['list', '--redis', 'redis://:secret#x@host'],
    '--redis: the URL cannot be read. Write user name and password with encodeURIComponent()',
  ],
  [['list', '--postgres', 'postgres://u:secret/x@host/db'], '--postgres: the URL cannot be read.'],
  [['list', '--quorum', 'redis://a,redis://b:70000,redis://c'], '--quorum: the port 70000 is out of range.'],
  [['list', ...REDIS, '--limit', '0'], '--limit takes a whole number'],
  [['list', ...REDIS, '--limitt', '1'], 'There is no option --limitt. Did you mean --limit? See --help.'],
  [['list', ...REDIS, '--limit', '-1'], '--limit takes a whole number, 1 or more.'],
  [['list', ...REDIS, '--limit', '--json'], "--limit takes a value: --limit N. Write --limit=N for one that begins with '-'."],
  [['list', ...REDIS, '--limit'], '--limit takes a value: --limit N.'],
  [['list', ...REDIS, '--json=yes'], '--json takes no value. Write it alone.'],
  [['list', '--redi=redis://:secret@a'], 'There is no option --redi. Did you mean --redis?'],
  [['list', '--redis://:secret@a'], 'There is no such option. See --help.'],
  [['list', ...REDIS, '-limit', '5'], 'There is no option -l. Did you mean --limit? See --help.'],
  [['inspect', '-1', ...REDIS], "There is no option -1. See --help. Put -- before a key that begins with '-'."],
  [['lst', ...REDIS], 'There is no such command. Did you mean list? The commands are: list, inspect,'],
  [['Release', ...REDIS], 'There is no such command. Did you mean release?'],
  [['help', 'doktor'], 'or completion. Did you mean doctor?'],
  [['list', 'a', 'b', ...REDIS], 'list takes one argument'],
  [['top', 'a', ...REDIS], 'top takes no argument'],
  [['inspect', ...REDIS], 'inspect takes one argument: KEY'],
  [['release', 'key', ...REDIS], 'release needs --fence N'],
  [['release', 'key', '--fence', '1.5', ...REDIS], '--fence takes a whole number'],
  [['top', '--limit', '5', ...REDIS], 'top takes no --limit. See top --help.'],
  [['completion'], 'completion takes one argument: bash or zsh'],
  [['completion', 'fish'], 'completion takes one argument: bash or zsh'],
  [['help', 'fish'], 'help takes one argument: list or inspect'],
])('%j is refused: %s', (words, problem) => {
  expect(() => parseCommandLine(words, {})).toThrow(WrongUse);
  expect(() => parseCommandLine(words, {})).toThrow(problem);
  expect(() => parseCommandLine(words, {})).not.toThrow('secret');
});

test('an option counts more than the environment, and a comma in a password ends no URL', () => {
  const env = { LOCKS_REDIS: 'redis://one', LOCKS_QUORUM: 'redis://:a,b@one,redis://two,rediss://three' };
  expect(parseCommandLine(['list', ...REDIS], env)).toMatchObject({ address: { kind: 'redis', urls: ['redis://localhost'] } });
  expect(parseCommandLine(['list'], { LOCKS_QUORUM: env.LOCKS_QUORUM })).toMatchObject({
    address: { kind: 'quorum', urls: ['redis://:a,b@one', 'redis://two', 'rediss://three'] },
  });
  expect(() => parseCommandLine(['list'], env)).toThrow('more than one store');
});

test('a schema is that of PostgreSQL', () => {
  const words = ['list', '--postgres', 'postgres://a/b', '--schema', 'locks'];
  expect(parseCommandLine(words, {})).toMatchObject({ schema: 'locks', address: { kind: 'postgres' } });
});

test('wrong use ends with 2 and one line, the version with 0', async () => {
  const [wrong, address, prefix, key, version] = await Promise.all([
    cli({}, ['list', '--limit', 'x', ...REDIS]),
    cli({}, ['list', '--redis', 'localhost:secret']),
    cli({}, ['list', '--prefix', 'a b', ...REDIS]),
    cli({}, ['inspect', 'x'.repeat(2_000), ...REDIS]),
    cli({}, ['--version']),
  ]);
  for (const { code, out, err } of [wrong, address, prefix, key]) {
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(/^.+\n$/);
    expect(err).not.toContain('secret');
  }
  expect(version).toMatchObject({ code: 0, err: '', out: '0.1.0\n' });
});

test('the first letters of help and version stand for them, and a value may begin with a dash', async () => {
  expect(parseCommandLine(['-v'], {})).toEqual({ text: 'version', about: '' });
  expect(parseCommandLine(['-h'], {})).toEqual({ text: 'help', about: '' });
  expect(parseCommandLine(['list', '-h'], {})).toEqual({ text: 'help', about: 'list' });
  expect(parseCommandLine(['list', ...REDIS, '--prefix=-a'], {})).toMatchObject({ prefix: '-a' });
  expect(parseCommandLine(['inspect', ...REDIS, '--', '-1'], {})).toMatchObject({ argument: '-1' });
  const [help, long] = await Promise.all([cli({}, ['-h']), cli({}, ['--help'])]);
  expect(help).toEqual(long);
});

test('a login in the environment completes URLs, and changes none that has one', () => {
  const login = { LOCKS_USER: 'me', LOCKS_PASSWORD: 'a/b%', LOCKS_SENTINEL_PASSWORD: 's p' };
  const urlsOf = (...words: string[]): readonly string[] => {
    const line = parseCommandLine(['list', ...words], login);
    return 'address' in line ? line.address.urls : [];
  };
  expect(urlsOf('--redis', 'redis://')).toEqual(['redis://me:a%2Fb%25@localhost']);
  expect(urlsOf('--redis', 'redis://you@host/1')).toEqual(['redis://you:a%2Fb%25@host/1']);
  const own = parseCommandLine(['list'], { ...login, LOCKS_REDIS: 'redis://you:secret@host' });
  expect(own).toMatchObject({ address: { urls: ['redis://you:secret@host'] } });
  expect(urlsOf('--redis-cluster', 'redis://a,redis://b')).toEqual(['redis://me:a%2Fb%25@a', 'redis://me:a%2Fb%25@b']);
  expect(urlsOf('--mysql', 'mysql://a/b')).toEqual(['mysql://me:a%2Fb%25@a/b']);
  expect(urlsOf('--postgres', 'postgres:///db?host=/tmp')).toEqual(['postgres:///db?host=%2Ftmp&user=me&password=a%2Fb%25']);
  const sentinels = parseCommandLine(['list', '--redis-sentinel', 'redis://a', '--master', 'm'], login);
  expect(sentinels).toMatchObject({ address: { urls: ['redis://:s%20p@a'], master: 'm', login: { user: 'me', password: 'a/b%' } } });
});
