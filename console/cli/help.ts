import { COMMANDS, isCommand, isText, type CommandEntry, type CommandName, type TextName } from './command-table.js';
import { AT_THE_STORE, OPTIONS, STORES, type OptionName } from './options.js';

export const PROGRAM = 'nestjs-distributed-lock';

const EXIT_CODES = 'Exit codes: 0 fine; 1 not held, or a check failed; 2 wrong use; 3 the store is away or refused.';

/** The text that `--help` prints: of a command, or of the program where no command is given. */
export function helpOf(command: string): string {
  return (isCommand(command) ? helpOfCommand(command) : general()).join('\n');
}

function general(): string[] {
  return [
    `Usage: ${PROGRAM} <command> [options]`,
    '',
    'Shows the locks of nestjs-distributed-lock, also while the application is down.',
    '',
    'Commands:',
    ...aligned(Object.entries(COMMANDS).map(([name, entry]) => [usageOf(name, entry), entry.says])),
    '',
    ...whereLocksAre([]),
    '',
    `The options of a command, and an example: ${PROGRAM} <command> --help`,
    EXIT_CODES,
  ];
}

function helpOfCommand(command: CommandName | TextName): string[] {
  const entry = COMMANDS[command];
  const { says, options, values, example } = entry;
  return [
    `Usage: ${PROGRAM} ${usageOf(command, entry)}${isText(command) ? '' : ' [options]'}`,
    '',
    `${says.charAt(0).toUpperCase()}${says.slice(1)}.`,
    ...(values ? ['', `${entry.argument.replaceAll(/[[\]]/g, '')}: ${values.join(', ')}`] : []),
    ...(options.length > 0 ? ['', 'Options:', ...optionLines(options)] : []),
    ...(isText(command) ? [] : ['', ...whereLocksAre(AT_THE_STORE)]),
    '',
    `Example: ${PROGRAM} ${example}`,
  ];
}

function usageOf(name: string, { argument, needs }: CommandEntry): string {
  return [name, argument, needs && shown(needs)].filter(Boolean).join(' ');
}

function whereLocksAre(more: readonly OptionName[]): string[] {
  return [
    'Where the locks are (one of these):',
    ...optionLines(STORES),
    ...(more.length > 0 ? ['', 'More about that store:', ...optionLines(more)] : []),
    'Others on this machine can read the options of a program. Pass a password in the environment only: in',
    'one of these variables, or in LOCKS_PASSWORD, which completes URLs without one, as LOCKS_USER does.',
  ];
}

function optionLines(names: readonly OptionName[]): string[] {
  return aligned(
    names.map((name) => {
      const { says, default: usual } = OPTIONS[name];
      return [shown(name), usual === undefined ? says : `${says} (default: ${usual})`];
    }),
  );
}

function shown(name: OptionName): string {
  const { value } = OPTIONS[name];
  return value === undefined ? `--${name}` : `--${name} ${value}`;
}

function aligned(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
