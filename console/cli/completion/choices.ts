import { COMMANDS, isCommand, optionsOf, type CommandName, type TextName } from '../command-table.js';
import { OPTIONS, type OptionName } from '../options.js';

/** A word that can be completed, and what it does. */
export interface Choice {
  readonly word: string;
  readonly says: string;
}

/** The words that may be typed, for the scripts of all shells. */
export interface Choices {
  /** Before a command. */
  readonly first: readonly Choice[];
  /** After each command: the words that its argument may be, and its options. */
  readonly after: readonly { readonly command: string; readonly choices: readonly Choice[] }[];
  /** The options after which any value may be typed, and those among them after which a file is. */
  readonly withValue: readonly string[];
  readonly withFile: readonly string[];
}

/** All that the table of commands has. */
export function choices(): Choices {
  const commands = Object.keys(COMMANDS) as (CommandName | TextName)[];
  const names = Object.keys(OPTIONS) as OptionName[];
  return {
    first: [...commands.map((word) => ({ word, says: COMMANDS[word].says })), ...(['help', 'version'] as const).map(optionChoice)],
    after: commands.map((command) => ({
      command,
      choices: [...(COMMANDS[command].values ?? []).map(valueChoice), ...optionsOf(command).map(optionChoice)],
    })),
    withValue: names.filter((name) => OPTIONS[name].value !== undefined).map((name) => `--${name}`),
    withFile: names.filter((name) => OPTIONS[name].value === 'FILE').map((name) => `--${name}`),
  };
}

function optionChoice(name: OptionName): Choice {
  return { word: `--${name}`, says: OPTIONS[name].says };
}

function valueChoice(word: string): Choice {
  return { word, says: isCommand(word) ? COMMANDS[word].says : '' };
}
