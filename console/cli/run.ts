import { checkKey } from '../../lib/core/words/lock-key.js';
import { isLockError } from '../../lib/core/words/errors.js';
import { VERSION } from '../../lib/core/words/version.js';
import type { CommandName } from './command-table.js';
import { contract } from './commands/contract.js';
import { doctor } from './commands/doctor.js';
import { incidents } from './commands/incidents.js';
import { inspect } from './commands/inspect.js';
import { list } from './commands/list.js';
import { processes } from './commands/processes.js';
import { release } from './commands/release.js';
import { top } from './commands/top.js';
import { parseCommandLine, type CommandLine, type TextLine } from './command-line.js';
import { completionOf } from './completion/completion.js';
import { helpOf } from './help.js';
import { hintOf } from './hints.js';
import { print, tell } from './output.js';
import { cannotAsk, Session } from './session.js';
import { WrongUse } from './wrong-use.js';

type Command = (session: Session, line: CommandLine) => Promise<number>;

const COMMANDS: Readonly<Record<Exclude<CommandName, 'contract'>, Command>> = { list, inspect, top, incidents, release, processes, doctor };

/** Runs a command, and resolves to the exit code of the process. */
export async function run(words: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  let line: CommandLine | undefined;
  try {
    const asked = parseCommandLine(words, env);
    if ('text' in asked) {
      print(textOf(asked));
      return 0;
    }
    line = asked;
    return await runCommand(line);
  } catch (error) {
    const message = isLockError(error) ? error.detail : (error as Error).message;
    tell(line ? `${message}${hintOf(message, line.address)}` : message);
    return error instanceof WrongUse || (isLockError(error) && error.code === 'LOCK_KEY') ? 2 : 3;
  }
}

function textOf({ text, about }: TextLine): string {
  switch (text) {
    case 'help':
      return helpOf(about);
    case 'completion':
      return completionOf(about);
    case 'version':
      return VERSION;
  }
}

/** Commands that only ask processes are of no use where that cannot be done; others say why. */
function checkHearing({ command }: CommandLine, unheard: string | undefined): void {
  if (unheard === undefined || command === 'release') {
    return;
  }
  const problem = cannotAsk(unheard);
  if (command !== 'list' && command !== 'inspect') {
    throw problem;
  }
  tell(problem.detail);
}

/** Commands that only ask processes cannot be run on a store that carries no messages between them. */
function checkMessages({ command, address }: CommandLine, { store }: Session): void {
  if (!store.messages && (command === 'processes' || command === 'incidents')) {
    throw new WrongUse(
      `${command} asks processes, which --${address.kind} cannot: its store carries no messages. See the locks by list, inspect and top.`,
    );
  }
}

async function runCommand(line: CommandLine): Promise<number> {
  const { command, argument } = line;
  if (command === 'contract') {
    return contract(line);
  }
  if (command === 'inspect' || command === 'release') {
    checkKey(argument, command);
  }
  const session = await Session.of(line);
  try {
    checkMessages(line, session);
    if (command !== 'doctor') {
      await session.connect();
      checkHearing(line, session.unheard);
    }
    return await COMMANDS[command](session, line);
  } finally {
    await session.close();
  }
}
