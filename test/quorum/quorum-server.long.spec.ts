import { QuorumServer } from '../../lib/quorum/members/quorum-server';
import { sourceOf } from '../support/redis-source';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';

test('the clock of a server is known from the first moment of a connection that was made anew: no vote may come late there', async () => {
  const redis = await RedisServer.start();
  /** The reading of its clock, as far as it was known, whenever a connection was ready. */
  const clocks: (number | undefined)[] = [];
  const server: QuorumServer = new QuorumServer(
    { source: sourceOf(redis.url) },
    'server 1 of 3',
    () => clocks.push(server.clockMs),
    () => true,
  );
  try {
    await server.plain.info();
    await until('a connection', () => server.session !== undefined);
    const first = server.session;
    first?.clock.read(Date.now(), performance.now());
    await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await until('another connection', () => server.session !== first);
    expect(clocks).toEqual([undefined, expect.any(Number)]);
  } finally {
    server.close();
    await redis.stop();
  }
});
