import { AT_THE_STORE, STORES, type OptionName } from './options.js';

/** The arguments of a command, and its action. */
export interface CommandEntry {
  /** Empty where it takes none; `[NAME]` may be left out. */
  readonly argument: string;
  /** The only words that the argument may be. */
  readonly values?: readonly string[];
  readonly says: string;
  /** The words after the name of the program. */
  readonly example: string;
  readonly options: readonly OptionName[];
  /** The option that it cannot do without. */
  readonly needs?: OptionName;
}

/** The commands that look at a store. */
const AT_A_STORE = {
  list: {
    argument: '[PREFIX]',
    says: 'lists the locks that are held, the oldest first',
    example: 'list balance: --limit 50',
    options: ['limit', 'json'],
  },
  inspect: {
    argument: 'KEY',
    says: 'shows one lock: who holds it, and who waits in which order',
    example: 'inspect balance:42',
    options: ['json'],
  },
  top: {
    argument: '',
    says: 'shows the oldest locks and those that are most waited for, each second',
    example: 'top --prefix jobs',
    options: ['json'],
  },
  incidents: {
    argument: '[PREFIX]',
    says: 'lists what went wrong: losses, forced releases, deadlocks, refusals, outages',
    example: 'incidents balance: --since 1h',
    options: ['since', 'json'],
  },
  release: {
    argument: 'KEY',
    says: 'releases a lock by force, if it is held at that fence',
    example: 'release balance:42 --fence 1795393322921241',
    options: ['fence', 'reason', 'by', 'yes', 'json'],
    needs: 'fence',
  },
  processes: {
    argument: '',
    says: 'lists the processes that answer, with their locks, calls and health',
    example: 'processes --json',
    options: ['json'],
  },
  doctor: {
    argument: '',
    says: 'checks the servers of the locks: versions, settings, rights',
    example: 'doctor',
    options: ['json'],
  },
  contract: {
    argument: '',
    says: 'runs the contract of stores on the servers, in a place of its own',
    example: 'contract --json',
    options: ['json'],
  },
} as const satisfies Readonly<Record<string, CommandEntry>>;

export type CommandName = keyof typeof AT_A_STORE;

/** The commands that print a text, and need no store. */
const OF_TEXT = {
  completion: {
    argument: 'SHELL',
    values: ['bash', 'zsh'],
    says: 'prints a script that completes commands and options in bash or zsh',
    example: 'completion bash >> ~/.bashrc',
    options: [],
  },
  help: {
    argument: '[COMMAND]',
    values: [...Object.keys(AT_A_STORE), 'completion'],
    says: 'prints the help of a command',
    example: 'help release',
    options: [],
  },
} as const satisfies Readonly<Record<string, CommandEntry>>;

export type TextName = keyof typeof OF_TEXT;

export const COMMANDS: Readonly<Record<CommandName | TextName, CommandEntry>> = { ...AT_A_STORE, ...OF_TEXT };

export function isCommand(word: string): word is CommandName | TextName {
  return Object.hasOwn(COMMANDS, word);
}

export function isText(command: CommandName | TextName): command is TextName {
  return Object.hasOwn(OF_TEXT, command);
}

/** All options that a command takes, its own first. */
export function optionsOf(command: CommandName | TextName): readonly OptionName[] {
  return [...COMMANDS[command].options, ...(isText(command) ? [] : [...STORES, ...AT_THE_STORE]), 'help'];
}
