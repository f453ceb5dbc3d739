import type { Member } from './member.js';
import type { Team } from './team.js';

/** How many calls each process makes at the same time. */
const CALLS = 4;

/** Has every member ask for the same lock again and again, and never resolves. */
export async function contend({ members }: Team): Promise<void> {
  await Promise.all(members.flatMap((member) => Array.from({ length: CALLS }, (_, call) => runForever(member, call))));
}

/** A call that fails is one that an operator has ended: the page shows it. */
async function runForever(member: Member, call: number): Promise<void> {
  for (let task = call; ; task += CALLS) {
    await member.run({ task, kind: 'locked' }).catch(() => undefined);
  }
}
