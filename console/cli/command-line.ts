import { parseArgs } from 'node:util';
import { addressOf, type Address } from './address/address.js';
import { COMMANDS, isCommand, isText, optionsOf, type CommandName, type TextName } from './command-table.js';
import { OPTIONS, PARSED, type OptionName } from './options.js';
import { WrongUse } from './wrong-use.js';

/** What is asked of a store, checked. */
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

/** A text that is asked for, and what it is about: a command or a shell. */
export interface TextLine {
  readonly text: TextName | 'version';
  readonly about: string;
}

/** The words after the name of the program. Throws `WrongUse` for those that mean nothing. */
export function parseCommandLine(words: readonly string[], env: NodeJS.ProcessEnv): CommandLine | TextLine {
  const { values, positionals, tokens } = parse(words);
  if (values.version) {
    return { text: 'version', about: '' };
  }
  const [command, argument = '', ...others] = positionals;
  if (values.help && (command === undefined || isCommand(command))) {
    return { text: 'help', about: command ?? '' };
  }
  if (command === undefined || !isCommand(command)) {
    // What stands in its place may be a URL with a password.
    throw new WrongUse(
      `There is ${command === undefined ? 'no command' : 'no such command'}. The commands are: ${Object.keys(COMMANDS).join(', ')}. See --help.`,
    );
  }
  checkArguments(command, argument, others);
  checkOptions(
    command,
    tokens.flatMap((token) => (token.kind === 'option' ? [token.name as OptionName] : [])),
  );
  if (isText(command)) {
    return { text: command, about: argument };
  }
  const address = addressOf(values, env);
  if (values.schema !== undefined && address.kind !== 'postgres') {
    throw new WrongUse(`--schema is for PostgreSQL, and --${address.kind} has none.`);
  }
  return {
    command,
    argument,
    address,
    prefix: values.prefix,
    schema: values.schema,
    json: values.json,
    limit: wholeNumber('limit', values.limit),
    since: values.since,
    yes: values.yes,
    fence: values.fence === undefined ? undefined : wholeNumber('fence', values.fence),
    by: shortText('by', values.by),
    reason: shortText('reason', values.reason),
  };
}

function parse(words: readonly string[]): ReturnType<typeof parseArgs<{ options: typeof PARSED; allowPositionals: true; tokens: true }>> {
  try {
    return parseArgs({ args: [...words], options: PARSED, allowPositionals: true, tokens: true });
  } catch (error) {
    const [problem] = (error as Error).message.split('. ');
    throw new WrongUse(`${problem}. See --help.`, { cause: error });
  }
}

function checkArguments(command: CommandName | TextName, argument: string, others: readonly string[]): void {
  const { argument: takes, values } = COMMANDS[command];
  const isMissing = argument === '' && takes !== '' && !takes.startsWith('[');
  const isTooMuch = others.length > 0 || (takes === '' && argument !== '');
  if (isMissing || isTooMuch) {
    throw new WrongUse(
      takes === ''
        ? `${command} takes no argument. See ${command} --help.`
        : `${command} takes one argument: ${values?.join(' or ') ?? takes}. Put quotes around a key with spaces.`,
    );
  }
  if (argument !== '' && values && !values.includes(argument)) {
    throw new WrongUse(`${command} takes one argument: ${values.join(' or ')}.`);
  }
}

function checkOptions(command: CommandName | TextName, given: readonly OptionName[]): void {
  const taken = optionsOf(command);
  const strange = given.find((name) => !taken.includes(name));
  if (strange !== undefined) {
    throw new WrongUse(`${command} takes no --${strange}. See ${command} --help.`);
  }
  const twice = given.find((name, at) => given.indexOf(name) < at);
  if (twice !== undefined) {
    throw new WrongUse(`${command} takes --${twice} once. See ${command} --help.`);
  }
  const { needs } = COMMANDS[command];
  if (needs !== undefined && !given.includes(needs)) {
    throw new WrongUse(`${command} needs --${needs} ${OPTIONS[needs].value}: ${OPTIONS[needs].says}.`);
  }
}

function wholeNumber(option: OptionName, given: string): number {
  const number = /^\d+$/.test(given) ? Number(given) : Number.NaN;
  if (!Number.isSafeInteger(number) || number < 1) {
    throw new WrongUse(`--${option} takes a whole number, 1 or more.`);
  }
  return number;
}

function shortText(option: OptionName, given: string | undefined): string | undefined {
  if (given !== undefined && given.length > 200) {
    throw new WrongUse(`--${option} takes 200 characters at most.`);
  }
  return given;
}
