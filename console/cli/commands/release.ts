import { createInterface } from 'node:readline/promises';
import { printable } from '../../../lib/core/words/shown.js';
import { ageOf } from '../age.js';
import type { CommandLine } from '../command-line.js';
import { print, printJson, tell } from '../output.js';
import type { Session } from '../session.js';

/** Releases a lock by force, if it is held at the fence that was given; 1 where it is not, or nobody confirmed. */
export async function release({ locks }: Session, { argument: key, fence = 0, yes, json }: CommandLine): Promise<number> {
  const lock = await locks.inspect(key);
  let released = false;
  if (lock?.fence === fence) {
    tell(`"${key}" is held by ${lock.by} since ${ageOf(lock.since)}, at fence ${fence}. Its code runs on until it hears of it.`);
    if (!yes && !(await isConfirmed(key))) {
      tell('That is not the key. Nothing was released.');
      return 1;
    }
    released = await locks.forceRelease(key, fence);
  }
  const heldAt = released ? undefined : (await locks.inspect(key))?.fence;
  if (json) {
    printJson({ key, fence, released, heldAt: heldAt ?? null });
  } else {
    print(printable(`"${key}" ${resultOf(released, fence, heldAt)}`));
  }
  return released ? 0 : 1;
}

function resultOf(released: boolean, fence: number, heldAt: number | undefined): string {
  if (released) {
    return 'was released.';
  }
  const why = heldAt === undefined ? 'it is free.' : `another has it now: fence ${heldAt}.`;
  return `was not released: it is not held at fence ${fence}; ${why}`;
}

/** Whether the operator types the key, as it is or as it was shown. The end of the input is no answer. */
async function isConfirmed(key: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const ended = new Promise<undefined>((resolve) => lines.once('close', () => resolve(undefined)));
    const typed = await Promise.race([lines.question('Type the key to release it: '), ended]);
    return typed === key || typed === printable(key);
  } finally {
    lines.close();
  }
}
