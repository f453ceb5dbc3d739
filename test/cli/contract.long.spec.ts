import { readFileSync } from 'node:fs';
import { cli } from '../support/cli';
import { RedisCluster } from '../support/redis-cluster';
import { RedisQuorum } from '../support/redis-quorum';
import { RedisServer } from '../support/redis-server';
import { StartedContract } from './started-contract';

/** A run takes about a minute, and more on a machine that stalls. */
const LIMIT_MS = 600_000;

let server: RedisServer;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  server = await RedisServer.start();
  // The application's own keys there stay.
  await server.client.set('lock:lock:{mine}', 'kept');
  env = { LOCKS_REDIS: server.url };
});
afterEach(async () => {
  expect(await server.client.keys('*')).toEqual(['lock:lock:{mine}']);
});
afterAll(() => server.stop());

interface Report {
  readonly ok: boolean;
  readonly servers: readonly { readonly level: string; readonly subject: string; readonly text: string }[];
  readonly rules: readonly { readonly level: string; readonly group: string; readonly name: string; readonly text?: string }[];
  readonly left: string | null;
}

test(
  'a server that will do ends with 0, and nothing is left there; a user needs no more rights than an application, and SCAN',
  async () => {
    const [, smallest = ''] = /^ACL SETUSER locker (.+)$/m.exec(readFileSync('docs/stores/redis.md', 'utf8')) ?? [];
    await server.client.call('ACL', 'SETUSER', 'app', ...smallest.split(' '), '+scan');
    const { code, out } = await cli({ LOCKS_REDIS: `redis://app:secret@127.0.0.1:${server.port}` }, ['contract', '--json']);
    const report = JSON.parse(out) as Report;
    expect(report.rules.filter(({ level }) => level === 'FAIL')).toEqual([]);
    expect({ code, ok: report.ok, left: report.left }).toEqual({ code: 0, ok: true, left: null });
    expect(report.rules.filter(({ level }) => level === 'ok').length).toBeGreaterThan(50);
    expect(new Set(report.rules.map(({ group }) => group))).toContain('turns');
  },
  LIMIT_MS,
);

test(
  'a server that evicts ends with 1 and says which setting to change',
  async () => {
    await server.client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    const { code, out } = await cli(env, ['contract']);
    await server.client.config('SET', 'maxmemory-policy', 'noeviction');
    expect(code).toBe(1);
    expect(out).toMatch(/^FAIL {2}server: eviction: .*Set it to noeviction/m);
    expect(out).toMatch(/^ok {4}turns: /m);
    expect(out).toMatch(
      /\n\d+ rules hold, 0 fail, \d+ were skipped\. Change what fails, and run it again\. A rule that does not say what to change: .*\n$/,
    );
  },
  LIMIT_MS,
);

test('a replica and a user who lacks a right end with 1, and no rule is tried', async () => {
  const replica = await RedisServer.startReplica(server.port);
  const ofReplica = await cli({ LOCKS_REDIS: replica.url }, ['contract']);
  await replica.stop();
  expect(ofReplica.code).toBe(1);
  expect(ofReplica.out).toMatch(/^FAIL {2}server: replicas: The server is a replica.* Pass the URL of its master\.$/m);
  expect(ofReplica.out).toMatch(/\nNo rule was checked\. Change what fails, and run it again\.\n$/);
  await server.client.call('ACL', 'SETUSER', 'poor', 'on', '>poor', 'allkeys', 'allchannels', 'allcommands', '-zadd');
  const poor = await cli({ LOCKS_REDIS: `redis://poor:poor@127.0.0.1:${server.port}` }, ['contract']);
  expect(poor.code).toBe(1);
  expect(poor.out).toMatch(/^FAIL {2}server: rights: The user lacks \+zadd\. Grant/m);
});

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s ends it with 1, and what it made is removed',
  async (signal) => {
    const run = await StartedContract.on(env);
    expect((await server.client.keys('lock:wake:contract-*')).length).toBeGreaterThan(0);
    expect(await run.endBy(signal)).toBe(1);
    expect(run.err).toBe('It was interrupted: the rules that are missing were not checked.\n');
    expect(run.out).not.toMatch(/^FAIL/m);
  },
  LIMIT_MS,
);

test(
  'a reader that has enough ends it with 1, and what it made is removed',
  async () => {
    const run = await StartedContract.on(env);
    expect(await run.endByClosing()).toBe(1);
    expect(run.err).toBe('It was interrupted: the rules that are missing were not checked.\n');
  },
  LIMIT_MS,
);

test('where a server is gone before the end, what is left there is named; where none was ever there, nothing is', async () => {
  const doomed = await RedisServer.start();
  const run = await StartedContract.on({ LOCKS_REDIS: doomed.url });
  await doomed.stop();
  expect(await run.endBy('SIGINT')).toBe(1);
  expect(run.err).toMatch(
    /^What the run made could not be removed: Redis did not answer: .* Remove the keys that begin with "lock:wake:contract-\w+"\.$/m,
  );
  const { code, out, err } = await cli({ LOCKS_REDIS: doomed.url }, ['contract']);
  expect({ code, err }).toEqual({ code: 1, err: '' });
  expect(out).toMatch(/^FAIL {2}store: Redis did not answer: /m);
}, 120_000);

test(
  'a quorum and a Cluster will do, and nothing is left on their servers',
  async () => {
    const quorum = await RedisQuorum.start(3);
    const ofQuorum = await cli({ LOCKS_QUORUM: quorum.urls.join(',') }, ['contract']);
    const kept = await Promise.all(quorum.servers.map(({ client }) => client.keys('*contract*')));
    await quorum.stop();
    expect({ failed: ofQuorum.out.match(/^FAIL.*$/gm), code: ofQuorum.code, kept: kept.flat() }).toEqual({
      failed: null,
      code: 0,
      kept: [],
    });
    const cluster = await RedisCluster.start();
    const ofCluster = await cli({ LOCKS_REDIS_CLUSTER: (cluster.nodes[0] as RedisServer).url }, ['contract']);
    const masters = await cluster.masters();
    const left = await Promise.all(masters.map(({ client }) => client.keys('*contract*')));
    await cluster.stop();
    expect({ failed: ofCluster.out.match(/^FAIL.*$/gm), code: ofCluster.code, left: left.flat() }).toEqual({
      failed: null,
      code: 0,
      left: [],
    });
  },
  LIMIT_MS,
);
