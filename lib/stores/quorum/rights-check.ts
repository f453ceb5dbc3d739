import { randomUUID } from 'node:crypto';
import { DONE_MS } from '../kit/protocol.js';
import type { RedisKeys } from '../redis/redis-keys.js';
import type { Script } from '../redis/script.js';
import { FORCE_RELEASE, INSPECT, JOIN, RELEASE, RENEW } from '../redis/scripts.js';
import type { QuorumServer } from './quorum-server.js';
import { SETTLE, VOTE } from './scripts.js';

const LEASE_MS = 4_000;

/** Runs each script at a server, so that a right that is missing shows at start-up and not in the middle of a section. */
export async function tryRights(server: QuorumServer, names: RedisKeys, process: string, fence: number): Promise<void> {
  const key = `start-up check of ${process}`;
  const tag = names.tag(key);
  const [lock, queue, counter] = [names.lock(tag), names.queue(tag), names.fence(tag)];
  const [owner, hold, other] = [randomUUID(), randomUUID(), randomUUID()];
  const told = [names.wake(''), key];
  const ask = async (script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> =>
    (await server.ask(script, key, keys, args)).reply;

  const vote = [lock, names.done(tag, hold), names.done(tag, `${hold}.1`), counter, `${names.prefix}:line:${tag}`];
  const stored = Number.parseInt(String(await ask(VOTE, vote, [owner, hold, 1, process, LEASE_MS, 'start-up check', fence, 0, 0])), 10);
  await ask(VOTE, vote, [randomUUID(), hold, 1, process, LEASE_MS, 'start-up check', fence, 1, 0]);
  await ask(VOTE, vote, [owner, hold, 2, process, LEASE_MS + 1, 'start-up check', fence, 0, 0]);
  await ask(SETTLE, [lock, counter], [owner, `${hold}.2`, stored]);
  await ask(JOIN, [lock, names.done(tag, other)], [owner, stored, other, process, LEASE_MS, 0]);
  await ask(RENEW, [lock], [owner, stored, other, LEASE_MS, 0]);
  await ask(INSPECT, [lock, queue], []);
  await ask(RELEASE, [lock, names.done(tag, hold), queue], [`${hold}.2`, DONE_MS, ...told]);
  await ask(FORCE_RELEASE, [lock, names.done(tag, randomUUID()), queue], [stored, DONE_MS, ...told]);
}
