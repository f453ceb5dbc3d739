import type { StoreHealth } from '../../../core/words/lock-health.js';
import { answeredOf, membersOf, worstOf } from '../../kit/probe.js';
import type { Member } from './member.js';
import { majorityAmong } from '../votes/verdicts.js';

/** Asks each server by itself. Those that do not answer have no vote; it is for core to say how many may be missing. */
export async function healthOf(members: readonly Member[]): Promise<StoreHealth> {
  const answers = (await Promise.all(members.map(({ server }) => server.plain.probe()))).flat();
  const evicts = members.flatMap((member) => member.evicts ?? []);
  return {
    ...worstOf(answeredOf(answers)),
    members: membersOf(
      answers,
      members.map(({ votes }) => votes),
    ),
    majority: majorityAmong(members.length),
    evicts: evicts.length > 0 ? evicts.includes(true) : undefined,
  };
}
