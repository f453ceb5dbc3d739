import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { DistributedLock, LockModule, LockService, type Lock } from 'nestjs-distributed-lock';
import { PostgresLockStore } from 'nestjs-distributed-lock/postgres';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { inspect } from 'node:util';
import { Client } from 'pg';
import { PostgresServer } from '../support/postgres-server';
import { until } from '../support/until';

/** The server writes every statement into its log, with all of its parameters, and the row that an error is about. */
const TALKATIVE = [
  'log_statement=all',
  'log_min_duration_statement=0',
  'log_parameter_max_length=-1',
  'log_parameter_max_length_on_error=-1',
  'log_error_verbosity=verbose',
  'log_lock_waits=on',
  'deadlock_timeout=10ms',
  'track_activity_query_size=65536',
];
const ACTIVITY = "SELECT query FROM pg_stat_activity WHERE query <> '' AND pid <> pg_backend_pid()";
const STORED = ['SELECT * FROM distributed_lock.lease', 'SELECT * FROM distributed_lock.done'];

let server: PostgresServer;
let modules: TestingModule[];
/** The bytes that were sent to the server. */
let sent: string[];
/** The values that were passed to `pg`: tracers of statements see them. */
let traced: string[];
/** The data that the server shows to its other users. */
let shown: string[];
const query = Client.prototype.query as (...args: unknown[]) => unknown;

beforeEach(async () => {
  [modules, sent, traced, shown] = [[], [], [], []];
  Client.prototype.query = function trace(this: Client, ...args: unknown[]): unknown {
    traced.push(inspect(args, { depth: 6, maxStringLength: Infinity, maxArrayLength: Infinity }));
    return query.apply(this, args);
  } as typeof Client.prototype.query;
  server = await PostgresServer.start(...TALKATIVE);
  await new PostgresLockStore(server.pool()).ensureSchema();
});
afterEach(async () => {
  await Promise.all(modules.map((module) => module.close()));
  Client.prototype.query = query as typeof Client.prototype.query;
  await server.stop();
});

@Injectable()
class Accounts {
  @DistributedLock({ key: 'account:<0>', ttl: 4_000 })
  async credit<T>(_id: string, body: () => Promise<T>): Promise<T> {
    return body();
  }
}

/** A socket that notes what is sent. `connect` undoes an earlier change of `write`. */
function overheard(): Socket {
  const socket = new Socket();
  return socket.once('connect', () => {
    const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
    socket.write = (data: Uint8Array | string, ...rest: unknown[]): boolean => {
      sent.push(Buffer.from(data as Uint8Array).toString('latin1'));
      return write(data, ...rest);
    };
  });
}

/** An application whose connections to the server are overheard. */
async function start(): Promise<TestingModule> {
  const module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store: new PostgresLockStore(server.pool({ stream: overheard })) })],
    providers: [Accounts],
  }).compile();
  module.useLogger(false);
  await module.init();
  modules.push(module);
  return module;
}

async function look(): Promise<void> {
  for (const sql of [ACTIVITY, ...STORED]) {
    shown.push(JSON.stringify(await server.query(sql)));
  }
}

/** The secrets of a lock: the text of its ticket, and the secrets in it. */
function secretsOf(lock: Lock): string[] {
  const ticket = lock.makeTicket();
  const entries = JSON.parse(Buffer.from(ticket, 'base64url').toString()) as [string, string, number][];
  return [ticket, ...entries.map(([, secret]) => secret)];
}

test('neither a ticket nor its secret is sent to the server: not in parameters, logs, errors, messages and rows', async () => {
  const [one, two] = [await start(), await start()];
  const [locks, others] = [one.get(LockService), two.get(LockService)];
  const secrets: string[] = [];

  // Held and renewed, entered by a ticket, waited for.
  await one.get(Accounts).credit('1', async () => {
    const lock = await locks.acquire('account:1');
    secrets.push(...secretsOf(lock));
    await others.withLock('account:1', { ticket: lock.makeTicket() }, async (joined) => {
      secrets.push(...secretsOf(joined));
      await look();
      await until('a renewal', () => server.log().includes('.renew($1'));
    });
    await lock.release();
  });
  const held = await locks.acquire(['a', 'b']);
  secrets.push(...secretsOf(held));
  const ticket = held.makeTicket();
  const next = [locks.acquire('a'), others.acquire('a')];
  await until('that another process waits', async () => ((await others.operations.inspect('a'))?.waiters.length ?? 0) > 0);
  await look();
  await held.release();
  // Either may be the first.
  const inTurn = next.map(async (acquired) => {
    const lock = await acquired;
    secrets.push(...secretsOf(lock));
    await lock.release();
  });
  await Promise.all(inTurn);
  // A ticket whose lock has ended.
  await expect(others.acquire('a', { ticket })).rejects.toMatchObject({ code: 'LOCK_LOST' });
  // Released by force, of which its process is notified.
  const forced = await locks.acquire('forced');
  secrets.push(...secretsOf(forced));
  await others.operations.forceRelease('forced', { fence: forced.fence });
  await until('that it was notified', () => forced.signal.aborted);
  // Errors of the server, which show the row and the parameters; and a wait for a row, which shows the statement.
  const broken = await locks.acquire('broken');
  secrets.push(...secretsOf(broken));
  await server.query('ALTER TABLE distributed_lock.lease ADD CONSTRAINT refused CHECK (fence < 0) NOT VALID');
  await until('that the server refused the row', async () => {
    await expect(others.acquire('broken', { ticket: broken.makeTicket(), wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE' });
    return server.log().includes('violates check constraint "refused"');
  });
  await server.query('ALTER TABLE distributed_lock.lease DROP CONSTRAINT refused');
  const blocker = await server.pool().connect();
  await blocker.query('BEGIN; SELECT FROM distributed_lock.lease FOR UPDATE');
  const refused = expect(others.acquire('broken', { ticket: broken.makeTicket(), wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE' });
  await until('that it waits for the row', () => server.log().includes('still waiting for'));
  await look();
  await refused;
  await blocker.query('ROLLBACK');
  blocker.release();
  await broken.release();
  await look();

  const log = server.log();
  const seen = { sent: sent.join('\n'), traced: traced.join('\n'), log, shown: shown.join('\n') };
  expect(new Set(secrets).size).toBeGreaterThan(10);
  for (const [where, text] of Object.entries(seen)) {
    expect({ where, found: [...new Set(secrets)].filter((secret) => text.includes(secret)) }).toEqual({ where, found: [] });
  }
  // Each of them did see the owners, by whose digests the server knows them.
  const owners = [...new Set(JSON.stringify(shown).match(/\\"owner\\":\\"[\w-]{22}/g))].map((owner) => owner.slice(-22));
  expect(owners.length).toBeGreaterThan(2);
  for (const [where, text] of Object.entries(seen)) {
    expect({ where, missing: owners.filter((owner) => !text.includes(owner)) }).toEqual({ where, missing: [] });
  }
  for (const said of [
    '.join($1',
    '.exchange($1',
    '.renew($1',
    'violates check constraint "refused"',
    'Failing row contains',
    'still waiting for',
  ]) {
    expect({ said, isLogged: log.includes(said) }).toEqual({ said, isLogged: true });
  }
});

test('pg publishes nothing on diagnostics channels: what it would publish there is to be overheard by the test above', () => {
  for (const name of ['pg', 'pg-pool', 'pg-protocol']) {
    const entry = createRequire(import.meta.url).resolve(name);
    const sources = readdirSync(dirname(entry), { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.js'));
    expect(sources.length).toBeGreaterThan(0);
    expect(sources.filter((file) => readFileSync(join(dirname(entry), file), 'utf8').includes('diagnostics_channel'))).toEqual([]);
  }
});
