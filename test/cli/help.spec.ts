import { COMMANDS, optionsOf, type CommandName } from '../../console/cli/command-table';
import { parseCommandLine } from '../../console/cli/command-line';
import { helpOf } from '../../console/cli/help';
import { OPTIONS } from '../../console/cli/options';
import { cli } from '../support/cli';

const NAMES = Object.keys(COMMANDS) as CommandName[];

test('help names each command in one line, and fits on a screen', async () => {
  const [long, short] = await Promise.all([cli({}, ['--help']), cli({}, ['help'])]);
  expect(long).toEqual({ code: 0, err: '', out: `${helpOf('')}\n` });
  expect(short).toEqual(long);
  const lines = long.out.split('\n');
  expect(lines[0]).toBe('Usage: nestjs-distributed-lock <command> [options]');
  expect(lines.length).toBeLessThanOrEqual(30);
  expect(lines.filter((line) => line.length > 110)).toEqual([]);
  expect(NAMES.filter((name) => !lines.some((line) => line.startsWith(`  ${name} `)))).toEqual([]);
});

test('each command has help of its own, by --help and by help', async () => {
  const [byOption, byCommand] = await Promise.all([cli({}, ['release', '--help']), cli({}, ['help', 'release'])]);
  expect(byOption).toEqual({ code: 0, err: '', out: `${helpOf('release')}\n` });
  expect(byCommand).toEqual(byOption);
  expect(byOption.out).toMatch(/^Usage: nestjs-distributed-lock release KEY --fence N \[options\]\n\nReleases a lock by force/);
});

test.each(NAMES)('the help of %s has its options with their defaults, and an example that is understood', (name) => {
  const help = helpOf(name);
  for (const option of optionsOf(name).filter((one) => one !== 'help')) {
    const { value, says, default: usual } = OPTIONS[option];
    const line = help.split('\n').find((each) => each.startsWith(`  --${option}${value === undefined ? ' ' : ` ${value}`}`));
    expect(line).toContain(usual === undefined ? says : `${says} (default: ${usual})`);
  }
  const [, example = ''] = /\nExample: nestjs-distributed-lock (.+)$/.exec(help) ?? [];
  const [words = ''] = example.split(' >> ');
  expect(() => parseCommandLine(words.split(' '), { LOCKS_REDIS: 'redis://localhost' })).not.toThrow();
  expect(words.split(' ')[0]).toBe(name);
});
