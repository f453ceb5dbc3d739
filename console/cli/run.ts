import { checkKey } from '../../lib/core/words/lock-key.js';
import { isLockError } from '../../lib/core/words/errors.js';
import { VERSION } from '../../lib/core/words/version.js';
import { doctor } from './commands/doctor.js';
import { incidents } from './commands/incidents.js';
import { inspect } from './commands/inspect.js';
import { list } from './commands/list.js';
import { processes } from './commands/processes.js';
import { release } from './commands/release.js';
import { top } from './commands/top.js';
import { parseCommandLine, type CommandLine, type CommandName } from './command-line.js';
import { HELP } from './help.js';
import { hintOf } from './hints.js';
import { print, tell } from './output.js';
import { Session } from './session.js';
import { WrongUse } from './wrong-use.js';

type Command = (session: Session, line: CommandLine) => Promise<number>;

const COMMANDS: Readonly<Record<CommandName, Command>> = { list, inspect, top, incidents, release, processes, doctor };

/** Runs a command, and resolves to the exit code of the process. */
export async function run(words: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  let line: ReturnType<typeof parseCommandLine> | undefined;
  try {
    line = parseCommandLine(words, env);
    if (line === 'help' || line === 'version') {
      print(line === 'help' ? HELP.trimEnd() : VERSION);
      return 0;
    }
    return await runCommand(line);
  } catch (error) {
    const message = isLockError(error) ? error.detail : (error as Error).message;
    tell(typeof line === 'object' ? `${message}${hintOf(message, line.address)}` : message);
    return error instanceof WrongUse || (isLockError(error) && error.code === 'LOCK_KEY') ? 2 : 3;
  }
}

async function runCommand(line: CommandLine): Promise<number> {
  const { command, argument } = line;
  if (command === 'inspect' || command === 'release') {
    checkKey(argument, command);
  }
  const session = await Session.of(line);
  try {
    if (command !== 'doctor') {
      await session.connect();
    }
    return await COMMANDS[command](session, line);
  } finally {
    await session.close();
  }
}
