import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { readFileSync } from 'node:fs';
import { createClient } from 'redis';
import { createClient as createClient6 } from 'redis-6';
import { LockConfigurationError, LockError } from '../../lib/core/words/errors';
import type { RedisSource } from '../../lib/redis/connection/redis-source';
import { QuorumLockStore } from '../../lib/quorum/quorum-lock-store';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { Certificates } from '../support/certificates';
import { freePort, RedisServer } from '../support/redis-server';

/** The words at the start of a store that cannot connect: of its error, or of warnings. */
async function saidAtStart(source: RedisSource): Promise<{ error: unknown; said: string }> {
  const store = new RedisLockStore(source);
  const warnings: string[] = [];
  const opening = store.open({ prefix: 'lock', warn: (warning) => warnings.push(warning) });
  const error = await opening.then(
    () => undefined,
    (refusal: unknown) => refusal,
  );
  await store.close();
  return { error, said: error instanceof LockError ? error.detail : warnings.join(' ') };
}

async function refusedStart(source: RedisSource): Promise<string> {
  const { error, said } = await saidAtStart(source);
  expect(error).toBeInstanceOf(LockConfigurationError);
  return said;
}

describe('a connection that can never be encrypted stops the start, and says what to correct', () => {
  let files: Certificates;
  let servers: readonly RedisServer[];
  /** With its own certificate, with that of another host, and two without TLS: one takes clients, and one is full. */
  let ports: Readonly<Record<'own' | 'elsewhere' | 'plain' | 'full', number>>;

  beforeAll(async () => {
    files = new Certificates();
    const [own, elsewhere] = [await freePort(), await freePort()];
    servers = await Promise.all([
      RedisServer.start(...files.ofRedis(own)),
      RedisServer.start(...files.ofRedis(elsewhere, 'elsewhere')),
      RedisServer.start('--maxclients', '1'),
    ]);
    const [{ port: plain }, , { port: full }] = servers as [RedisServer, RedisServer, RedisServer];
    ports = { own, elsewhere, plain, full };
  });
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()));
    files.remove();
  });

  interface Tls {
    readonly ca?: Buffer;
    readonly cert?: Buffer;
    readonly key?: Buffer;
  }
  const authority = (): Tls => ({ ca: readFileSync(files.authority) });
  const ownCertificate = (): Tls => ({ cert: readFileSync(files.path('client.pem')), key: readFileSync(files.path('client-key.pem')) });

  const CLIENTS: readonly (readonly [string, (port: number, tls: Tls | undefined) => RedisSource])[] = [
    ['ioredis', (port, tls) => ({ host: '127.0.0.1', port, ...(tls && { tls }) })],
    ['a client of ioredis', (port, tls) => new Redis({ host: '127.0.0.1', port, ...(tls && { tls }), lazyConnect: true })],
    ['node-redis 5', (port, tls) => createClient({ socket: { host: '127.0.0.1', port, ...(tls && { tls: true as const, ...tls }) } })],
    ['node-redis 6', (port, tls) => createClient6({ socket: { host: '127.0.0.1', port, ...(tls && { tls: true as const, ...tls }) } })],
  ];
  const FAULTS: readonly (readonly [string, keyof typeof ports, () => Tls, RegExp])[] = [
    ['an authority that the client does not know', 'own', ownCertificate, /Give the client the authority .* tls\.ca/],
    [
      'a certificate for another name',
      'elsewhere',
      () => ({ ...authority(), ...ownCertificate() }),
      /a name that stands in the certificate/,
    ],
    ['a port without TLS that answers', 'full', authority, /The port takes connections without TLS/],
  ];
  test.each(CLIENTS.flatMap(([client, make]) => FAULTS.map(([fault, ...rest]) => [fault, client, make, ...rest] as const)))(
    '%s, on %s',
    async (_fault, _client, make, port, tls, cure) => {
      const said = await refusedStart(make(ports[port], tls()));
      expect(said).toMatch(/^The connection to Redis cannot be encrypted: /);
      // Of OpenSSL the reason, without the lines of its source.
      expect(said).not.toMatch(/routines|\.c:\d/);
      expect(said).toMatch(cure);
    },
  );

  // Redis waits for the rest of a command, and closes a connection that may have been used already.
  const SILENT: readonly (readonly [string, keyof typeof ports, () => Tls | undefined])[] = [
    ['a port without TLS', 'plain', authority],
    ['a port with TLS, to which the client speaks without', 'own', () => undefined],
    ['no certificate of the client', 'own', authority],
  ];
  test.each(CLIENTS.flatMap(([client, make]) => SILENT.map(([fault, ...rest]) => [fault, client, make, ...rest] as const)))(
    '%s is told, where the server does not say so, on %s',
    async (_fault, _client, make, port, tls) => {
      const { said } = await saidAtStart(make(ports[port], tls()));
      expect(said).toMatch(/both use TLS, or neither, .* certificate that the server wants|give it one that the server trusts/);
    },
  );

  test('each server of a quorum that does not say so is told', async () => {
    const store = new QuorumLockStore([
      { host: '127.0.0.1', port: ports.plain, tls: authority() },
      { host: '127.0.0.1', port: ports.own },
      { host: '127.0.0.1', port: ports.elsewhere },
    ]);
    const warnings: string[] = [];
    await store.open({ prefix: 'lock', warn: (warning) => warnings.push(warning) });
    await store.close();
    for (const server of [1, 2, 3]) {
      const said = warnings.find((warning) => warning.startsWith(`server ${server} of 3 of the quorum: `));
      expect(said).toMatch(/Make sure that client and port both use TLS, or neither, .*\. Locked calls go on with the others/);
    }
  });
});

describe('a command that the server has under another name stops the start, and is named', () => {
  const COMMANDS = ['DEL', 'EXISTS', 'GETSET', 'HDEL', 'HGET', 'HGETALL', 'HLEN', 'HMGET', 'HSET', 'PEXPIRE', 'PTTL', 'TIME'];
  test.each([...COMMANDS, 'ZADD', 'ZRANGE', 'ZRANK', 'ZREM', 'ZSCORE', 'EVALSHA'])('%s', async (command) => {
    const server = await RedisServer.start('--rename-command', command, `OTHER${command}`);
    const said = await refusedStart(server.url);
    await server.stop();
    expect(said).toMatch(/The server has renamed it or does not have it: locks need it under its own name\.$/);
    expect(said.toUpperCase()).toContain(command);
  });
});
