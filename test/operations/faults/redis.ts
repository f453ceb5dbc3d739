import { RedisLockStore } from '../../../lib/stores/redis/redis-lock-store';
import { RedisServer } from '../../support/redis-server';
import type { Faults, World } from './fault';

/** One server, with what happens to it. */
async function single(strike: (server: RedisServer) => unknown): Promise<World> {
  const server = await RedisServer.start();
  await giveUser(server);
  const url = `redis://locker:one@127.0.0.1:${server.port}`;
  return {
    store: new RedisLockStore(url),
    address: { LOCKS_REDIS: url },
    strike: () => strike(server),
    stop: () => server.stop(),
  };
}

async function withReplica(): Promise<World> {
  const server = await RedisServer.start();
  const replica = await RedisServer.startReplica(server.port);
  await server.replicasOnline(1);
  return {
    store: new RedisLockStore(server.url, { minReplicas: 1 }),
    address: { LOCKS_REDIS: server.url },
    strike: () => replica.kill(),
    stop: () => Promise.all([replica.stop(), server.stop()]),
  };
}

/** The user of the locks, who may do all. */
export function giveUser({ client }: RedisServer): Promise<unknown> {
  return client.acl('SETUSER', 'locker', 'on', '>one', '~*', '&*', '+@all');
}

export async function changePassword({ client }: RedisServer): Promise<void> {
  await client.acl('SETUSER', 'locker', 'resetpass', '>two');
  await client.client('KILL', 'USER', 'locker');
}

export function takeRights({ client }: RedisServer): Promise<unknown> {
  return client.acl('SETUSER', 'locker', '-evalsha', '-eval');
}

export function makeReplica({ client }: RedisServer): Promise<unknown> {
  return client.replicaof('127.0.0.1', 1);
}

export function fill({ client }: RedisServer): Promise<unknown> {
  return client.config('SET', 'maxmemory', 1);
}

export const REDIS: Faults = {
  'read-only replica': () => single(makeReplica),
  'memory full': () => single(fill),
  hangs: () => single((server) => server.pause()),
  gone: () => single((server) => server.kill()),
  'wrong password': () => single(changePassword),
  'rights taken': () => single(takeRights),
  'channels taken': () => single(({ client }) => client.acl('SETUSER', 'locker', 'resetchannels')),
  'replica lost': withReplica,
};
