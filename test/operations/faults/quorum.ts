import { QuorumLockStore } from '../../../lib/quorum/quorum-lock-store';
import { RedisQuorum } from '../../support/redis-quorum';
import type { RedisServer } from '../../support/redis-server';
import type { Faults, World } from './fault';
import { changePassword, fill, needReplicas, pauseWrites, giveUser, makeReplica, takeRights } from './redis';

/** Three servers, with what happens to the last of them, or to so many. */
async function three(strike: (server: RedisServer) => unknown, count = 1): Promise<World> {
  const quorum = await RedisQuorum.start(3);
  await Promise.all(quorum.servers.map((server) => giveUser(server)));
  const urls = quorum.servers.map(({ port }) => `redis://locker:one@127.0.0.1:${port}`);
  return {
    connect: () => new QuorumLockStore(urls),
    address: { LOCKS_QUORUM: urls.join(',') },
    strike: () => Promise.all(quorum.servers.slice(-count).map((server) => strike(server))),
    stop: () => quorum.stop(),
  };
}

export const QUORUM: Faults = {
  'one read-only replica': () => three(makeReplica),
  'one full': () => three(fill),
  'one hangs': () => three((server) => server.pause()),
  'one of three gone': () => three((server) => server.kill()),
  'two of three gone': () => three((server) => server.kill(), 2),
  'two full': () => three(fill, 2),
  'wrong password of one': () => three(changePassword),
  'one without replicas': () => three(needReplicas),
  'two without replicas': () => three(needReplicas, 2),
  'writes of one paused': () => three(pauseWrites),
  'rights of one taken': () => three(takeRights),
  'rights of two taken': () => three(takeRights, 2),
};
