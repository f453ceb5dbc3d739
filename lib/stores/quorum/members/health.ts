import type { StoreHealth } from '../../../core/words/lock-health.js';
import { probe, PROBE_MS, worstOf } from '../../kit/probe.js';
import type { Member } from './member.js';
import { majorityAmong } from '../votes/verdicts.js';

/** Asks each server by itself. Those that do not answer have no vote; it is for core to say how many may be missing. */
export async function healthOf(members: readonly Member[]): Promise<StoreHealth> {
  const answers = await Promise.allSettled(members.map(({ server }) => probe(async () => ({ serverMs: await server.time(PROBE_MS) }))));
  const evicts = members.flatMap((member) => member.evicts ?? []);
  return {
    ...worstOf(answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))),
    members: answers.map(({ status }, at) => {
      const reachable = status === 'fulfilled';
      return { reachable, voting: reachable && members[at]?.counts === true };
    }),
    majority: majorityAmong(members.length),
    evicts: evicts.length > 0 ? evicts.includes(true) : undefined,
  };
}
