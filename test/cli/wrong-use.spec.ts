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
  [['list', '--redis', 'redis://:secret@host:99999'], '--redis: the port 99999 is out of range.'],
  [
    ['list', '--redis', 'redis://:secret#x@host'],
    '--redis: the URL cannot be read. Write user name and password with encodeURIComponent()',
  ],
  [['list', '--postgres', 'postgres://u:secret/x@host/db'], '--postgres: the URL cannot be read.'],
  [['list', '--quorum', 'redis://a,redis://b:70000,redis://c'], '--quorum: the port 70000 is out of range.'],
  [['list', ...REDIS, '--limit', '0'], '--limit takes a whole number'],
  [['list', ...REDIS, '--limitt', '1'], "Unknown option '--limitt'"],
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
