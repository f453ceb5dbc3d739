import { versionFinding } from '../../console/cli/doctor/finding';
import { redisFindings } from '../../console/cli/doctor/redis-findings';
import { productBy as mysqlProduct } from '../../lib/mysql/server-check';
import { productBy as postgresProduct } from '../../lib/postgres/server-check';
import { productBy as redisProduct } from '../../lib/redis/server-info';
import { serverWarnings } from '../../lib/redis/server-check';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';

/**
 * The answers of servers that cannot be installed here, as their documentation and their users show them; other fields
 * are left out.
 */
const INFO = {
  valkey: '# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.10\r\n',
  dragonfly: '# Server\r\nredis_version:7.4.0\r\ndragonfly_version:df-v1.40.1\r\nredis_mode:standalone\r\nthread_count:8\r\n',
  keydb: '# Server\r\nredis_version:6.3.4\r\n# Replication\r\nrole:master\r\n# CPU\r\nserver_threads:2\r\n',
  activeReplica: '# Server\r\nredis_version:6.3.4\r\n# Replication\r\nrole:active-replica\r\n# CPU\r\nserver_threads:2\r\n',
  enterprise: '# Server\r\nredis_version:7.2.4\r\nrlec_version:7.4.2-54\r\n',
};

test.each([
  [INFO.valkey, 'Valkey', '8.1.10'],
  [INFO.dragonfly, 'Dragonfly', 'df-v1.40.1'],
  [INFO.keydb, 'KeyDB', '6.3.4'],
  [INFO.enterprise, 'Redis Enterprise', '7.4.2-54'],
  ['# Server\r\nredis_version:8.2.1\r\nio_threads_active:0\r\n', 'Redis', '8.2.1'],
])('%j is %s %s, of which nothing is known that does not hold', (info, name, version) => {
  expect(redisProduct(info)).toEqual({ name, version });
  expect(serverWarnings(info)).toEqual([]);
});

test('an active replica of KeyDB is a warning at the start', () => {
  expect(serverWarnings(INFO.activeReplica)).toEqual([expect.stringMatching(/^KeyDB is an active replica: .* Keep the locks in a server/)]);
});

test('a reply to INFO that was refused shows no product', () => {
  expect(redisProduct('')).toBeUndefined();
});

test('the server of these tests is known, and the doctor calls it tested', async () => {
  const server = await RedisServer.start();
  try {
    const info = await server.client.info();
    const { name, version = '' } = redisProduct(info) ?? {};
    expect(name).toMatch(/^(Redis|Valkey)$/);
    let text: string | undefined;
    await until('an answer in time', async () => {
      const findings = await redisFindings(`redis://127.0.0.1:${server.port}`, 'lock', 'server');
      text = findings.find(({ subject }) => subject === 'server: version')?.text;
      return text !== undefined;
    });
    expect(text).toContain(`${name} ${version}.`);
  } finally {
    await server.stop();
  }
});

test('the doctor warns of a product that is not tested, and says how to find out', () => {
  expect(versionFinding('server', redisProduct(INFO.dragonfly), 'Redis', 'Valkey')).toEqual({
    level: 'warn',
    subject: 'server',
    text: 'Dragonfly df-v1.40.1. These locks were never run on it. docs/choosing-a-store.md, "Tested servers", says how to find out.',
  });
  expect(versionFinding('server', mysqlProduct('9.7.4', false), 'MariaDB', 'MySQL')).toMatchObject({ level: 'ok' });
  expect(versionFinding('server', redisProduct(INFO.activeReplica), 'Redis').text).toMatch(/^KeyDB 6\.3\.4\. KeyDB is an active replica: /);
});

test.each([
  ['PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc', 'false', 'PostgreSQL', '15.18'],
  ['PostgreSQL 15.4 on x86_64-pc-linux-gnu, compiled by x86_64-pc-linux-gnu-gcc', 'true', 'Aurora', '15.4'],
  ['CockroachDB CCL v25.2.22 (x86_64-pc-linux-gnu, built 2025/02/03 17:28:15, go1.22)', 'false', 'CockroachDB', '25.2.22'],
  ['PostgreSQL 15.12-YB-2025.2.3.0-b1 on x86_64-pc-linux-gnu, compiled by clang', 'false', 'YugabyteDB', '2025.2.3.0-b1'],
])('%j is a server of the kind of PostgreSQL', (product, isAurora, name, version) => {
  const found = postgresProduct({ product, is_aurora: isAurora });
  expect(found).toMatchObject({ name, version });
  expect(found?.warning !== undefined).toBe(['CockroachDB', 'YugabyteDB'].includes(name));
});

test.each([
  ['10.11.19-MariaDB-0+deb12u1', false, 'MariaDB', '10.11.19'],
  ['5.5.5-10.6.12-MariaDB-log', false, 'MariaDB', '10.6.12'],
  ['8.4.3', false, 'MySQL', '8.4.3'],
  ['8.0.32', true, 'Aurora', '8.0.32'],
  ['8.0.30-Vitess', false, 'Vitess', '8.0.30'],
  ['8.0.11-TiDB-v7.5.1', false, 'TiDB', '7.5.1'],
])('%j is a server of the kind of MySQL', (version, isAurora, name, own) => {
  const found = mysqlProduct(version, isAurora);
  expect(found).toMatchObject({ name, version: own });
  expect(found?.warning !== undefined).toBe(['TiDB', 'Vitess'].includes(name));
});
