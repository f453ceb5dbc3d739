import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RedisLockStore } from '../../../lib/redis/redis-lock-store';
import { RedisServer } from '../../support/redis-server';
import type { Faults, World } from './fault';

/** One server, with what happens to it. */
async function single(strike: (server: RedisServer) => unknown, ...settings: readonly string[]): Promise<World> {
  const server = await RedisServer.start(...settings);
  await giveUser(server);
  const url = `redis://locker:one@127.0.0.1:${server.port}`;
  return {
    connect: () => new RedisLockStore(url),
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
    connect: () => new RedisLockStore(server.url, { minReplicas: 1 }),
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

/** It answers the writes of nobody. */
export function needReplicas({ client }: RedisServer): Promise<unknown> {
  return client.config('SET', 'min-replicas-to-write', 1);
}

/** It answers what is read, and no write. */
export function pauseWrites({ client }: RedisServer): Promise<unknown> {
  return client.client('PAUSE', 3_600_000, 'WRITE');
}

/** A snapshot fails where its folder has gone. */
function withoutDisk(): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'lock-unsaved-'));
  return single(
    async ({ client }) => {
      rmSync(folder, { recursive: true });
      await client.config('SET', 'save', '3600 1');
      await client.bgsave();
    },
    '--dir',
    folder,
  );
}

export const REDIS: Faults = {
  'read-only': () => single(makeReplica),
  'memory full': () => single(fill),
  'disk fails': withoutDisk,
  'no replicas': () => single(needReplicas),
  'writes paused': () => single(pauseWrites),
  hangs: () => single((server) => server.pause()),
  gone: () => single((server) => server.kill()),
  'wrong password': () => single(changePassword),
  'rights taken': () => single(takeRights),
  'keys taken': () => single(({ client }) => client.acl('SETUSER', 'locker', 'resetkeys', '~other:*')),
  'channels taken': () => single(({ client }) => client.acl('SETUSER', 'locker', 'resetchannels')),
  'replica lost': withReplica,
};
