import { setTimeout as sleep } from 'node:timers/promises';
import { INITIAL, type TaskKind, type TaskRecord } from './task.js';
import type { Team } from './team.js';

/** How much there is to do. */
export interface RoundPlan {
  readonly tasks: number;
  readonly kind: TaskKind;
  /** Between the arrival of one task and the next. */
  readonly staggerMs: number;
}

/** The result of a round. */
export interface Round {
  /** In the order of their numbers. */
  readonly records: readonly TaskRecord[];
  /** In hundredths. */
  readonly balance: number;
}

/**
 * Hands the first tasks to one member and the next ones to another, one shortly after the other, and waits until all
 * have ended.
 */
export async function runRound({ members, account, balance }: Team, { tasks, kind, staggerMs }: RoundPlan): Promise<Round> {
  await balance.write(account, INITIAL);
  const records = await Promise.all(
    Array.from({ length: tasks }, async (_, index) => {
      await sleep(index * staggerMs);
      const member = members[Math.floor((index * members.length) / tasks)] as Team['members'][number];
      return member.run({ task: index + 1, kind });
    }),
  );
  return { records, balance: await balance.read(account) };
}
