import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cli } from '../support/cli';
import { freePort, RedisServer } from '../support/redis-server';

let folder: string;
let server: RedisServer;
let tlsPort: number;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lock-tls-'));
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
  const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost'];
  execFileSync('openssl', [...request, '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', certificate], { stdio: 'ignore' });
  tlsPort = await freePort();
  const files = ['--tls-cert-file', certificate, '--tls-key-file', key, '--tls-ca-cert-file', certificate];
  server = await RedisServer.start('--tls-port', String(tlsPort), ...files, '--tls-auth-clients', 'no');
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

test('a certificate that nobody has signed is named with what to do, and accepted once it is known', async () => {
  const env = { LOCKS_REDIS: `rediss://127.0.0.1:${tlsPort}` };
  for (const command of ['list', 'doctor']) {
    const { out, err } = await cli(env, [command]);
    expect(out + err).toMatch(/self-signed certificate.* Pass the file .*: --ca FILE\./);
  }
  const file = join(folder, 'certificate.pem');
  for (const [variables, words] of [
    [{}, ['--ca', file]],
    [{ NODE_EXTRA_CA_CERTS: file }, []],
  ] as const) {
    const known = await cli({ ...env, ...variables }, ['list', ...words]);
    expect(known).toMatchObject({ code: 0, out: expect.stringMatching(/^No locks are held\.\n/), err: '' });
  }
});

test('TLS against a plain port, and the other way round, is said', async () => {
  const plain = await cli({ LOCKS_REDIS: `redis://127.0.0.1:${tlsPort}` }, ['list']);
  expect(plain).toMatchObject({
    code: 3,
    out: '',
    err: expect.stringContaining('If the port speaks TLS, pass rediss:// instead of redis://.'),
  });
  const encrypted = await cli({ LOCKS_REDIS: `rediss://127.0.0.1:${server.port}` }, ['doctor']);
  expect(encrypted.out).toContain('If the port speaks no TLS, pass redis:// instead of rediss://.');
});
