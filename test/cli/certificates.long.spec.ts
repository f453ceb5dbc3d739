import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MySqlLockStore } from '../../lib/mysql/mysql-lock-store';
import { PostgresLockStore } from '../../lib/postgres/postgres-lock-store';
import { Certificates } from '../support/certificates';
import { cli, cliUntil, type CliRun } from '../support/cli';
import { DATABASE, MySqlServer } from '../support/mysql-server';
import { PostgresServer } from '../support/postgres-server';
import { freePort, RedisServer } from '../support/redis-server';
import { until } from '../support/until';

let files: Certificates;

beforeAll(() => {
  files = new Certificates();
});
afterAll(() => files.remove());

const trusted = (): string[] => ['--ca', files.authority];
const known = (): string[] => [...trusted(), '--cert', files.path('client.pem'), '--key', files.path('client-key.pem')];
const refusal = (run: CliRun): string => `${run.code}: ${run.out}${run.err}`;

/** Each: nothing is trusted; the authority is, and the client shows no certificate; all is well. */
async function triesAll(env: NodeJS.ProcessEnv): Promise<void> {
  expect(refusal(await cli(env, ['list']))).toMatch(
    /^3: .* (Pass the file with the certificate of its authority: |If an authority .* pass )--ca FILE\.\n$/,
  );
  expect((await cliUntil(env, ['list', ...known()], ({ code }) => code === 0)).out).toMatch(/^No locks are held\./);
  expect((await cli(env, ['doctor', ...known(), '--json'])).code).toBe(0);
}

test('Redis: --ca, --cert and --key', async () => {
  const port = await freePort();
  const server = await RedisServer.start(...files.ofRedis(port));
  try {
    const env = { LOCKS_REDIS: `rediss://127.0.0.1:${port}` };
    await triesAll(env);
    const without = await cli(env, ['list', ...trusted()]);
    // A server that closes may do so before the client has read why: then only the end of the connection is seen.
    expect(refusal(without)).toMatch(
      /^3: (Redis did not answer: .*|.* cannot be encrypted: tlsv13 alert certificate required \(\w+\)\..*) --cert FILE --key FILE\.\n$/,
    );
  } finally {
    await server.stop();
  }
});

test('Redis: a certificate of another host is refused', async () => {
  const port = await freePort();
  const server = await RedisServer.start(...files.ofRedis(port, 'elsewhere'));
  try {
    const run = await cli({ LOCKS_REDIS: `rediss://127.0.0.1:${port}` }, ['list', ...known()]);
    expect(refusal(run)).toMatch(
      /^3: .* does not match certificate.* Write the name of the host in the URL as it stands in its certificate\.\n$/,
    );
  } finally {
    await server.stop();
  }
});

test('a quorum of Redis', async () => {
  const ports = [await freePort(), await freePort(), await freePort()];
  const servers = await Promise.all(ports.map((port) => RedisServer.start(...files.ofRedis(port))));
  try {
    const env = { LOCKS_QUORUM: ports.map((port) => `rediss://127.0.0.1:${port}`).join(',') };
    expect((await cliUntil(env, ['list', ...known()], ({ code }) => code === 0)).out).toMatch(/^No locks are held\./);
    expect((await cli(env, ['list', ...trusted()])).code).toBe(3);
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
});

test('Redis Cluster', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lock-cluster-tls-'));
  const [port, bus] = [await freePort(), await freePort()];
  const server = await RedisServer.start(
    ...files.ofRedis(port),
    ...[
      '--cluster-enabled',
      'yes',
      '--tls-cluster',
      'yes',
      '--cluster-port',
      String(bus),
      '--dir',
      folder,
      '--cluster-announce-ip',
      '127.0.0.1',
    ],
  );
  try {
    await server.client.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
    await until('that the node serves its slots', async () => (await server.client.cluster('INFO')).includes('cluster_state:ok'));
    await triesAll({ LOCKS_REDIS_CLUSTER: `rediss://127.0.0.1:${port}` });
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true });
  }
});

test('Redis Sentinel', async () => {
  const [port, sentinelPort] = [await freePort(), await freePort()];
  const server = await RedisServer.start(...files.ofRedis(port));
  const folder = mkdtempSync(join(tmpdir(), 'lock-sentinel-tls-'));
  const file = join(folder, 'sentinel.conf');
  writeFileSync(file, `port 0\ntls-replication yes\nsentinel monitor locks 127.0.0.1 ${port} 1\n`);
  const sentinel = spawn('redis-server', [file, '--sentinel', ...files.ofRedis(sentinelPort)], { stdio: 'ignore' });
  try {
    const env = { LOCKS_REDIS_SENTINEL: `rediss://127.0.0.1:${sentinelPort}`, LOCKS_MASTER: 'locks' };
    await cliUntil(env, ['doctor', ...known()], ({ out }) => out.includes(`It names the master 127.0.0.1:${port}.`));
    await triesAll(env);
  } finally {
    sentinel.kill('SIGKILL');
    await once(sentinel, 'exit');
    await server.stop();
    rmSync(folder, { recursive: true });
  }
});

describe('PostgreSQL', () => {
  let server: PostgresServer;

  beforeAll(async () => {
    const rules = ['local all all trust', 'hostssl all locker 127.0.0.1/32 cert', 'hostnossl all locker 127.0.0.1/32 reject'];
    const passwords = ['host all clerk 127.0.0.1/32 scram-sha-256', 'host all all 127.0.0.1/32 trust'];
    writeFileSync(files.path('rules.conf'), [...rules, ...passwords, ''].join('\n'));
    const own = ['ssl=on', `ssl_cert_file=${files.path('server.pem')}`, `ssl_key_file=${files.path('server-key.pem')}`];
    server = await PostgresServer.start(...own, `ssl_ca_file=${files.authority}`, `hba_file=${files.path('rules.conf')}`);
    await server.query(`CREATE ROLE locker LOGIN SUPERUSER; CREATE ROLE clerk LOGIN SUPERUSER PASSWORD 'a/b c'`);
    const store = new PostgresLockStore(server.pool());
    await store.ensureSchema();
  });
  afterAll(() => server.stop());

  test('--ca, --cert and --key, whatever the URL says of TLS', async () => {
    await triesAll({ LOCKS_POSTGRES: `${server.urlFor('locker')}?sslmode=verify-full` });
    const plain = await cli({ LOCKS_POSTGRES: server.urlFor('locker') }, ['list', ...known()]);
    expect(plain).toMatchObject({ code: 0, err: '' });
    const without = await cli({ LOCKS_POSTGRES: server.urlFor('locker') }, ['list', ...trusted()]);
    expect(refusal(without)).toMatch(/^3: .*certificate.* Pass the certificate of this client: --cert FILE --key FILE\.\n$/);
  });

  test('the login comes from the environment, also for a URL without a host', async () => {
    const login = { LOCKS_USER: 'clerk', LOCKS_PASSWORD: 'a/b c' };
    for (const url of [`postgres://127.0.0.1:${server.port}/postgres`, `postgres:///postgres?host=127.0.0.1&port=${server.port}`]) {
      expect(await cli({ ...login, LOCKS_POSTGRES: url }, ['list'])).toMatchObject({ code: 0, err: '' });
    }
    const wrong = await cli({ ...login, LOCKS_POSTGRES: server.urlFor('clerk'), LOCKS_PASSWORD: 'not-to-be-printed' }, ['list']);
    expect(refusal(wrong)).toMatch(/^3: .*password authentication failed for user "clerk"/);
    expect(refusal(wrong)).not.toContain('not-to-be-printed');
  });
});

test('MySQL: --ca, --cert and --key, and the name of the host', async () => {
  const ownOf = (name: string): string[] => [`--ssl-cert=${files.path(`${name}.pem`)}`, `--ssl-key=${files.path(`${name}-key.pem`)}`];
  const server = await MySqlServer.start(...ownOf('server'), `--ssl-ca=${files.authority}`);
  const elsewhere = await MySqlServer.start(...ownOf('elsewhere'), `--ssl-ca=${files.authority}`);
  try {
    for (const each of [server, elsewhere]) {
      await each.query(`CREATE USER locker@'%' REQUIRE X509`);
      await each.query(`GRANT ALL ON ${DATABASE}.* TO locker@'%'`);
      await new MySqlLockStore(each.pool()).ensureSchema();
    }
    const urlOf = ({ port }: MySqlServer, host = 'localhost'): string => `mysql://locker@${host}:${port}/${DATABASE}`;
    // The driver reads the rest of its options from the URL, as JSON.
    const encrypted = await cli({ LOCKS_MYSQL: `${urlOf(server)}?ssl={}` }, ['list']);
    expect(refusal(encrypted)).toMatch(/^3: .*certificate.* Pass the file with the certificate of its authority: --ca FILE\.\n$/);
    for (const host of ['localhost', '127.0.0.1']) {
      expect(await cli({ LOCKS_MYSQL: urlOf(server, host) }, ['list', ...known()])).toMatchObject({ code: 0, err: '' });
    }
    expect((await cli({ LOCKS_MYSQL: urlOf(server) }, ['list', ...trusted()])).code).toBe(3);
    const strange = await cli({ LOCKS_MYSQL: urlOf(elsewhere) }, ['list', ...known()]);
    expect(refusal(strange)).toMatch(/^3: .* does not match certificate.* Write the name of the host/);
  } finally {
    await Promise.all([server.stop(), elsewhere.stop()]);
  }
});
