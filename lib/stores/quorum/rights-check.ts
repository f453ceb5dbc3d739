import { randomUUID } from 'node:crypto';
import { fieldOf, RedisCommands } from '../redis/redis-commands.js';
import type { RedisKeys } from '../redis/redis-keys.js';
import type { Command } from '../redis/script.js';
import type { QuorumServer } from './quorum-server.js';
import { SETTLE, VOTE } from './scripts.js';

const LEASE_MS = 4_000;

/** Runs each script at a server, so that a right that is missing shows at start-up and not in the middle of a section. */
export async function tryRights(server: QuorumServer, names: RedisKeys, process: string, proposed: number): Promise<void> {
  const key = `start-up check of ${process}`;
  const tag = names.tag(key);
  const commands = new RedisCommands(names, process);
  const [owner, hold, other] = [randomUUID(), randomUUID(), randomUUID()];
  const ask = async (command: Command): Promise<unknown> => (await server.ask(command)).reply;
  const voteOf = (by: string, attempt: number, waited: number): Command =>
    VOTE.command(key, {
      lock: names.lock(tag),
      done: names.done(tag, hold),
      withdrawn: names.done(tag, `${hold}.1`),
      counter: names.fence(tag),
      line: `${names.prefix}:line:${tag}`,
      owner: by,
      votes: fieldOf(`${hold}.`),
      vote: fieldOf(`${hold}.${attempt}`),
      process,
      by: 'start-up check',
      fence: proposed,
      attempt,
      ttl: LEASE_MS + attempt,
      waited,
      latest: 0,
    });

  const fence = Number.parseInt(String(await ask(voteOf(owner, 1, 0))), 10);
  await ask(voteOf(randomUUID(), 1, 1));
  await ask(voteOf(owner, 2, 0));
  await ask(SETTLE.command(key, { lock: names.lock(tag), counter: names.fence(tag), owner, vote: fieldOf(`${hold}.2`), fence }));
  const joined = { key, owner, fence, id: other, ttlMs: LEASE_MS, limitMs: 1_000, lingering: false, by: 'start-up check' };
  await ask(commands.join(joined, 0));
  await ask(commands.renew([joined]));
  await ask(commands.inspect(key));
  await ask(commands.release({ key, id: `${hold}.2` }));
  await ask(commands.forceRelease(key, fence));
}
