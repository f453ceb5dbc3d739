import { randomUUID } from 'node:crypto';
import type { Command } from '../../redis/scripts/script.js';
import { startUpHold } from '../../redis/server-check.js';
import { voteOf, type QuorumCommands } from '../votes/quorum-commands.js';
import type { QuorumServer } from './quorum-server.js';

/** Runs each script at a server, so that a missing right shows at start-up and not in the middle of a section. */
export async function tryRights(server: QuorumServer, commands: QuorumCommands, proposed: number): Promise<void> {
  // Another key for each try: the remains of an earlier try are not in the way.
  const hold = startUpHold(`start-up check ${randomUUID()}`);
  const { key, id, ttlMs } = hold;
  const ask = async (command: Command): Promise<unknown> => (await server.ask(command)).reply;
  const request = { hold, attempt: 1, fence: proposed, waitedMs: 0, ageMs: 0 };
  const fence = Number.parseInt(String(await ask(commands.vote(request, 0))), 10);
  await ask(commands.vote({ ...request, hold: { ...hold, owner: randomUUID() }, waitedMs: 1 }, 0));
  await ask(commands.vote({ ...request, hold: { ...hold, ttlMs: ttlMs + 1 }, attempt: 2 }, 0));
  await ask(commands.settle(hold, voteOf(id, 2), fence));
  const joined = { ...hold, fence, id: randomUUID() };
  await ask(commands.join(joined, 0));
  await ask(commands.renew([joined]));
  await ask(commands.inspect(key));
  await ask(commands.release({ ...hold, id: voteOf(id, 2) }));
  await ask(commands.forceRelease(key, fence));
  // Commands of one turn are sent as one script, which the server knows from now on. Its errors name no command, so it
  // comes last.
  const release = commands.release({ ...hold, id: voteOf(id, 1) });
  await Promise.all([ask(commands.inspect(key)), ask(release), ask(release)]);
}
