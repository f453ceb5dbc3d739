import { randomUUID } from 'node:crypto';
import { DemoSettings } from './demo-settings.js';
import { joinByFork } from './forked-member.js';
import { joinHere } from './local-member.js';
import type { Member } from './member.js';
import { connectBalance, type SharedBalance } from './shared-balance.js';

/** The processes of a demo, and the balance that they share. */
export interface Team {
  readonly members: readonly Member[];
  readonly account: string;
  readonly balance: SharedBalance;
  leave(): Promise<void>;
}

/** Two processes that share a Redis server. */
export async function teamOfTwo(redisUrl: string, workMs: number): Promise<Team> {
  const account = randomUUID();
  const balance = await connectBalance(redisUrl);
  const members = await Promise.all(['A', 'B'].map((name) => joinByFork(new DemoSettings(name, account, workMs, redisUrl))));
  return {
    members,
    account,
    balance,
    leave: async () => {
      await Promise.all(members.map((member) => member.leave()));
      balance.onApplicationShutdown();
    },
  };
}

/** This process alone, where there is no Redis. */
export async function teamOfOne(workMs: number): Promise<Team> {
  const account = randomUUID();
  const member = await joinHere(new DemoSettings('A', account, workMs, undefined));
  return { members: [member], account, balance: member.balance, leave: () => member.leave() };
}
