import { randomUUID } from 'node:crypto';
import type { LockPlace } from '../lock-place.js';
import { DemoSettings } from './demo-settings.js';
import { joinByFork } from './forked-member.js';
import { joinHere } from './local-member.js';
import type { Member } from './member.js';
import { openBalance } from './open-balance.js';
import type { SharedBalance } from './shared-balance.js';

/** The processes of a demo, and the balance that they share. */
export interface Team {
  readonly members: readonly Member[];
  readonly account: string;
  readonly balance: SharedBalance;
  leave(): Promise<void>;
}

/** Two processes that share their locks, or this one alone where locks are in its memory. */
export function gatherTeam(locks: LockPlace, workMs: number): Promise<Team> {
  return locks.store === 'memory' ? teamOfOne(locks, workMs) : teamOfTwo(locks, workMs);
}

async function teamOfTwo(locks: LockPlace, workMs: number): Promise<Team> {
  const account = randomUUID();
  const balance = await openBalance(locks);
  const members = await Promise.all(['A', 'B'].map((name) => joinByFork(new DemoSettings(name, account, workMs, locks))));
  return {
    members,
    account,
    balance,
    leave: async () => {
      await Promise.all(members.map((member) => member.leave()));
      await balance.onApplicationShutdown();
    },
  };
}

async function teamOfOne(locks: LockPlace, workMs: number): Promise<Team> {
  const account = randomUUID();
  const member = await joinHere(new DemoSettings('A', account, workMs, locks));
  return { members: [member], account, balance: member.balance, leave: () => member.leave() };
}
