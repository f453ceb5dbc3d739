import { parseArgs } from 'node:util';
import { addressOf, type Address } from './address.js';
import { WrongUse } from './wrong-use.js';

/** What each command takes after its name. */
export const ARGUMENTS = {
  list: '[PREFIX]',
  inspect: 'KEY',
  top: '',
  incidents: '[PREFIX]',
  release: 'KEY',
  processes: '',
  doctor: '',
} as const;

export type CommandName = keyof typeof ARGUMENTS;

/** What was asked for, checked. */
export interface CommandLine {
  readonly command: CommandName;
  /** The key, or what keys begin with; empty where there is none. */
  readonly argument: string;
  readonly address: Address;
  readonly prefix: string;
  readonly schema: string | undefined;
  readonly json: boolean;
  readonly limit: number;
  /** A duration, as it was given. */
  readonly since: string;
  readonly yes: boolean;
  readonly fence: number | undefined;
  /** Who releases by force, and why. */
  readonly by: string | undefined;
  readonly reason: string | undefined;
}

const OPTIONS = {
  redis: { type: 'string' },
  quorum: { type: 'string' },
  postgres: { type: 'string' },
  prefix: { type: 'string', default: 'lock' },
  schema: { type: 'string' },
  json: { type: 'boolean', default: false },
  limit: { type: 'string', default: '1000' },
  since: { type: 'string', default: '24h' },
  fence: { type: 'string' },
  by: { type: 'string' },
  reason: { type: 'string' },
  yes: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
  version: { type: 'boolean', default: false },
} as const;

/** The words after the name of the program. Throws `WrongUse` for those that mean nothing. */
export function parseCommandLine(words: readonly string[], env: NodeJS.ProcessEnv): CommandLine | 'help' | 'version' {
  const { values, positionals } = parse(words);
  if (values.version) {
    return 'version';
  }
  const [command, argument = '', ...others] = positionals;
  if (values.help) {
    return 'help';
  }
  if (command === undefined || !isCommand(command)) {
    // What stands in its place may be a URL with a password.
    throw new WrongUse(
      `There is ${command === undefined ? 'no command' : 'no such command'}. The commands are: ${Object.keys(ARGUMENTS).join(', ')}. See --help.`,
    );
  }
  checkArguments(command, argument, others);
  return {
    command,
    argument,
    address: addressOf(values, env),
    prefix: values.prefix,
    schema: values.schema,
    json: values.json,
    limit: wholeNumber('limit', values.limit),
    since: values.since,
    yes: values.yes,
    fence: fenceOf(command, values.fence),
    by: shortText('by', values.by),
    reason: shortText('reason', values.reason),
  };
}

function parse(words: readonly string[]): ReturnType<typeof parseArgs<{ options: typeof OPTIONS; allowPositionals: true }>> {
  try {
    return parseArgs({ args: [...words], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    const [problem] = (error as Error).message.split('. ');
    throw new WrongUse(`${problem}. See --help.`, { cause: error });
  }
}

function isCommand(word: string): word is CommandName {
  return Object.hasOwn(ARGUMENTS, word);
}

function checkArguments(command: CommandName, argument: string, others: readonly string[]): void {
  const takes: string = ARGUMENTS[command];
  const isMissing = takes === 'KEY' && argument === '';
  const isTooMuch = others.length > 0 || (takes === '' && argument !== '');
  if (isMissing || isTooMuch) {
    throw new WrongUse(`${command} takes ${takes === '' ? 'no argument' : `one argument: ${takes}`}. Put quotes around a key with spaces.`);
  }
}

function fenceOf(command: CommandName, given: string | undefined): number | undefined {
  if (command === 'release' && given === undefined) {
    throw new WrongUse('release needs --fence N, so that a later owner is safe. Look at the lock with: inspect KEY.');
  }
  return given === undefined ? undefined : wholeNumber('fence', given);
}

function wholeNumber(option: string, given: string): number {
  const number = /^\d+$/.test(given) ? Number(given) : Number.NaN;
  if (!Number.isSafeInteger(number) || number < 1) {
    throw new WrongUse(`--${option} takes a whole number, 1 or more.`);
  }
  return number;
}

function shortText(option: string, given: string | undefined): string | undefined {
  if (given !== undefined && given.length > 200) {
    throw new WrongUse(`--${option} takes 200 characters at most.`);
  }
  return given;
}
