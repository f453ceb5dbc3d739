import { setTimeout as sleep } from 'node:timers/promises';
import type { HealthReason, LockHealth, MemberHealth } from '../../../lib/core/words/lock-health.js';
import { shownMs } from '../age.js';
import { ok, warning, type Finding } from './finding.js';

/** For how long a subscription that was just asked for may take, in milliseconds. */
const SUBSCRIBING_MS = 2_000;
const AGAIN_MS = 50;
/** A clock that is so far off deserves a look, in milliseconds. */
const MOST_SKEW_MS = 1_000;

/** The findings of the store's health, once the store has had the time to subscribe. */
export async function healthFindings(check: () => Promise<LockHealth>): Promise<Finding[]> {
  const giveUpAt = performance.now() + SUBSCRIBING_MS;
  let health = await check();
  while (health.reachable && (health.hearsTurns === false || isJoining(health)) && performance.now() < giveUpAt) {
    await sleep(AGAIN_MS);
    health = await check();
  }
  const { members = [], hearsTurns } = health;
  return [
    reachFinding(health),
    ...(health.clockSkewMs === undefined ? [] : [skewFinding(health.clockSkewMs)]),
    ...(hearsTurns === undefined ? [] : [turnsFinding(hearsTurns)]),
    ...members.map((member, at) => memberFinding(member, `member ${at + 1} of ${members.length}`)),
  ];
}

/** Whether servers that answer are not known to vote yet. */
function isJoining({ members = [] }: LockHealth): boolean {
  return members.some(({ reachable, voting, refuses }) => reachable && voting === false && refuses === undefined);
}

/** Why locked calls fail, and what to do, by the reason in the health. */
const FAILURES: Readonly<Partial<Record<HealthReason, string>>> = {
  unreachable: 'It does not answer, so locked calls fail. Make sure that the servers run and can be reached from here.',
  noMajority:
    'Fewer servers vote than a majority, so locked calls fail. Make sure that the servers run, take writes and can be reached from here.',
  readOnly: 'It takes no writes, so locked calls fail. Pass the URL of the server that does: the primary, not a replica or a standby.',
  full: 'Its memory is full and it evicts nothing, so locked calls fail. Raise maxmemory, or delete what needs no place there.',
};

function reachFinding({ reasons, latencyMs }: LockHealth): Finding {
  const subject = 'store';
  const failing = reasons.map((reason) => FAILURES[reason]).find((text) => text !== undefined);
  return failing === undefined
    ? ok(subject, `It answers${latencyMs === undefined ? '' : ` within ${shownMs(latencyMs)}`}.`)
    : { level: 'FAIL', subject, text: failing };
}

function skewFinding(skewMs: number): Finding {
  const subject = 'clock';
  const text = `The server's clock is ${shownMs(Math.abs(skewMs))} ${skewMs < 0 ? 'behind' : 'ahead of'} that of this machine.`;
  return Math.abs(skewMs) > MOST_SKEW_MS
    ? warning(subject, `${text} Synchronize the clocks: ages in lists are off by that.`)
    : ok(subject, text);
}

function turnsFinding(hears: boolean): Finding {
  const subject = 'turns';
  return hears
    ? ok(subject, 'Messages arrive here.')
    : warning(
        subject,
        'Messages do not arrive here, so waiting calls poll. Grant SUBSCRIBE and PUBLISH, or let the listener reach the server itself.',
      );
}

const REFUSALS: Readonly<Record<NonNullable<MemberHealth['refuses']>, string>> = {
  readOnly: 'It takes no writes, so it grants nothing. Use a primary, not a replica or a standby.',
  full: 'Its memory is full and it evicts nothing, so it grants nothing. Raise maxmemory, or delete what needs no place there.',
};

function memberFinding({ reachable, voting, refuses }: MemberHealth, subject: string): Finding {
  if (!reachable) {
    return warning(subject, `It gives no answer that counts. See why above, at "${subject.replace('member', 'server')}".`);
  }
  if (refuses) {
    return warning(subject, REFUSALS[refuses]);
  }
  return voting === false
    ? warning(subject, 'It answers, and its votes do not count yet. They do when the longest lease has passed since its restart.')
    : ok(subject, voting ? 'It votes.' : 'It answers.');
}
