import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { oneServerFindings } from '../../console/cli/doctor/one-server';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { cli, cliUntil } from '../support/cli';
import { healthWith } from '../support/health-with';
import { makeLocks } from '../support/make-locks';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';

describe('an address that leads to two servers by turns, each of which takes writes', () => {
  let servers: readonly RedisServer[];
  let balancer: Server;
  let port: number;
  const sockets = new Set<Socket>();

  beforeAll(async () => {
    servers = await Promise.all([RedisServer.start(), RedisServer.start()]);
    let turn = 0;
    balancer = createServer((client) => {
      const server = connect((servers[turn++ % servers.length] as RedisServer).port, '127.0.0.1');
      for (const [from, to] of [[client, server] as const, [server, client] as const]) {
        sockets.add(from);
        from.on('error', () => undefined).on('close', () => to.destroy());
        from.pipe(to);
      }
    }).listen(0, '127.0.0.1');
    await once(balancer, 'listening');
    ({ port } = balancer.address() as AddressInfo);
  });
  afterAll(async () => {
    balancer.close();
    sockets.forEach((socket) => socket.destroy());
    await Promise.all(servers.map((server) => server.stop()));
  });

  test('doctor fails, and says that each has locks of its own', async () => {
    const env = { LOCKS_REDIS: `redis://127.0.0.1:${port}` };
    const run = await cliUntil(env, ['doctor'], ({ out }) => out.includes('address'));
    expect(run.code).toBe(1);
    expect(run.out).toMatch(
      /FAIL +server: address: It leads to 2 servers, .* two owners may have one lock\. Give the address of one of them/,
    );
    expect((await cli({ LOCKS_REDIS: servers[0]?.url }, ['doctor'])).out).toMatch(/ok +server: address: It leads to one server\./);
  });

  test('a product whose servers have one set of data, and a server that may not say who it is, are not judged', async () => {
    const source = { host: '127.0.0.1', port };
    const info = 'redis_version:7.4.0\r\nrole:master\r\nrun_id:of-none\r\n';
    expect(await oneServerFindings(source, info, 'server')).toEqual([expect.objectContaining({ level: 'FAIL' })]);
    expect(await oneServerFindings(source, `${info}rlec_version:7.4.2\r\n`, 'server')).toEqual([]);
    expect(await oneServerFindings(source, '', 'server')).toEqual([]);
  });

  test('health says that messages do not arrive: they go to the one, and are awaited at the other', async () => {
    const store = new RedisLockStore({ host: '127.0.0.1', port });
    await store.open({ prefix: 'lock', warn: () => undefined });
    const locks = makeLocks(store);
    const channels = async () => (await Promise.all(servers.map(({ client }) => client.pubsub('CHANNELS', 'lock:wake:*')))).flat();
    await until('a subscription', async () => (await channels()).length > 0);
    // The process has to learn of it: without one, messages do not arrive either.
    await sleep(500);
    for (let check = 0; check < 3; check++) {
      expect(await healthWith(locks, 'polls')).toMatchObject({ status: 'degraded', hearsTurns: false });
    }
    await store.close();
  });
});
