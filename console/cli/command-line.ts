import { parseArgs } from 'node:util';
import { nearest } from '../../lib/core/words/check-options.js';
import { addressOf, type Address } from './address/address.js';
import { COMMANDS, isCommand, isText, optionsOf, type CommandName, type TextName } from './command-table.js';
import { OPTIONS, PARSED, type OptionName } from './options.js';
import { WrongUse } from './wrong-use.js';

/** The request for a store, checked. */
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
    // A word that is no option may be a URL with a password.
    const names = Object.keys(COMMANDS);
    const problem = command === undefined ? 'no command.' : `no such command.${didYouMean(command, names)}`;
    throw new WrongUse(`There is ${problem} The commands are: ${names.join(', ')}. See --help.`);
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

type Parsed = ReturnType<typeof parseArgs<{ options: typeof PARSED; allowPositionals: true; tokens: true }>>;
type OptionToken = Extract<Parsed['tokens'][number], { kind: 'option' }>;

/** Not strict: the parser's own messages do not say what to write. */
function parse(words: readonly string[]): Parsed {
  const parsed = parseArgs({ args: [...words], options: PARSED, allowPositionals: true, tokens: true, strict: false }) as unknown as Parsed;
  for (const token of parsed.tokens) {
    if (token.kind === 'option') {
      checkOption(token, words[token.index] ?? '');
    }
  }
  return parsed;
}

function checkOption({ name, rawName, value, inlineValue }: OptionToken, word: string): void {
  if (!Object.hasOwn(OPTIONS, name)) {
    // A word that is no option may be a URL with a password.
    const shown = /^--?[\w-]+$/.test(rawName) ? `option ${rawName}` : 'such option';
    const meant = didYouMean(word.replace(/^-+|=.*/g, ''), Object.keys(OPTIONS), '--');
    throw new WrongUse(
      `There is no ${shown}.${meant} See --help.${rawName.startsWith('--') ? '' : " Put -- before a key that begins with '-'."}`,
    );
  }
  const { value: takes } = OPTIONS[name];
  if (takes === undefined && value !== undefined) {
    throw new WrongUse(`--${name} takes no value. Write it alone.`);
  }
  // A negative number is refused where numbers are read.
  if (takes !== undefined && (value === undefined || (!inlineValue && /^-\D/.test(value)))) {
    throw new WrongUse(`--${name} takes a value: --${name} ${takes}. Write --${name}=${takes} for one that begins with '-'.`);
  }
}

/** The sentence that names a word like a mistyped one; empty where there is none. */
function didYouMean(mistyped: string, words: readonly string[], before = ''): string {
  const meant = nearest(mistyped, words);
  return meant === undefined ? '' : ` Did you mean ${before}${meant}?`;
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
    throw new WrongUse(`${command} takes one argument: ${values.join(' or ')}.${didYouMean(argument, values)}`);
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
