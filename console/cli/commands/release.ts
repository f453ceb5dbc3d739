import { userInfo } from 'node:os';
import { createInterface } from 'node:readline/promises';
import type { StoredLock } from '../../../lib/core/seam/lock-store.js';
import { printable, sharing } from '../../../lib/core/words/shown.js';
import { absenceOf } from '../absence.js';
import { ageOf } from '../age.js';
import type { CommandLine } from '../command-line.js';
import { print, printJson, remark, tell } from '../output.js';
import type { Session } from '../session.js';

/** How much is told of a name and of a reason, in characters. */
const [MOST_NAME, MOST_REASON] = [100, 200];

/** Releases a lock by force, if it is held at the fence that was given; 1 where it is not, or nobody confirmed. */
export async function release(session: Session, line: CommandLine): Promise<number> {
  const { locks } = session;
  const { argument: key, fence = 0, yes, json, by, reason } = line;
  const lock = await locks.inspect(key);
  let released = false;
  if (lock?.fence === fence) {
    tell(heldWords(key, lock));
    const answers = yes ? { reason } : await confirm(key, reason);
    if ('problem' in answers) {
      tell(`${answers.problem} Nothing was released.`);
      return 1;
    }
    released = await locks.forceRelease(key, fence, { by: by ?? `${userName()} (command line)`, reason: answers.reason });
  }
  const heldAt = released ? undefined : (await locks.inspect(key))?.fence;
  if (json) {
    printJson({ key, fence, released, heldAt: heldAt ?? null });
  } else {
    print(printable(`"${key}" ${resultOf(released, fence, heldAt)}`));
  }
  remark(released || heldAt !== undefined ? undefined : await absenceOf(session, line), line);
  return released ? 0 : 1;
}

function heldWords(key: string, { by, since, fence, holds, shares }: StoredLock): string {
  const held = `"${key}" is held by ${by} since ${ageOf(since)}`;
  return shares !== undefined && holds > 1
    ? `${held}, and by ${holds - 1} more (${sharing(shares, holds)}), at fence ${fence}. All are taken out. Their code runs on until it hears of it.`
    : `${held}, at fence ${fence}. Its code runs on until it hears of it.`;
}

function resultOf(released: boolean, fence: number, heldAt: number | undefined): string {
  if (released) {
    return 'was released.';
  }
  const why = heldAt === undefined ? 'it is free.' : `another has it now: fence ${heldAt}.`;
  return `was not released: it is not held at fence ${fence}; ${why}`;
}

/** Why a lock is released, or what does not let it be. */
type Answers = { readonly reason: string | undefined } | { readonly problem: string };

/**
 * The operator has to type the key, as it is or as it was shown, and the reason of the release. The end of the input is
 * no answer.
 */
async function confirm(key: string, given: string | undefined): Promise<Answers> {
  const lines = createInterface({ input: process.stdin });
  // Lines that come at once are kept for the next question.
  const typed = lines[Symbol.asyncIterator]();
  const ask = async (question: string): Promise<string | undefined> => {
    process.stderr.write(question);
    const { value, done } = await typed.next();
    return done ? undefined : value;
  };
  try {
    const answer = await ask('Type the key to release it: ');
    if (answer !== key && answer !== printable(key)) {
      return { problem: 'That is not the key.' };
    }
    const reason = (given ?? (await ask('Why? ')))?.trim();
    return reason ? { reason: reason.slice(0, MOST_REASON) } : { problem: 'No reason was given.' };
  } finally {
    lines.close();
  }
}

/** The user of this machine; one that has no name, as in some containers, has a number. */
function userName(): string {
  try {
    return userInfo().username.slice(0, MOST_NAME);
  } catch {
    return `user ${process.getuid?.()}`;
  }
}
