import 'reflect-metadata';
import { jest } from '@jest/globals';
import { Controller, Get, Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type { Redis } from 'ioredis';
import { createHash } from 'node:crypto';
import {
  currentLock,
  DistributedLock,
  LOCK_CHANNEL,
  LockExceptionFilter,
  LockModule,
  LockService,
  RedisLockStore,
  type LockError,
  type LockEvent,
} from 'nestjs-distributed-lock';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import request from 'supertest';
import { holdIds } from '../support/hold-ids';
import { makeLocks } from '../support/make-locks';
import { until } from '../support/until';
import { RedisServer } from '../support/redis-server';

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g;
/** The names of holds. */
let hold: RegExp;
const SECRET = /^[\w-]{22}$/;

let server: RedisServer;
let monitor: Redis;
/** Every hold and name of a store that was ever sent to the server, and every ticket with the secrets in it. */
let secrets: Set<string>;
/** Everything that others get to see. */
let seen: string[];
let errors: LockError[];
let events: LockEvent[];

const show = (value: unknown): number => seen.push(inspect(value, { depth: 10, showHidden: true }), JSON.stringify(value) ?? '');
const onEvent = (event: unknown): void => {
  events.push(event as LockEvent);
  show(event);
};
const log = (...args: unknown[]): void => args.forEach(show);
const LOGGER = { log, error: log, warn: log, debug: log, verbose: log, fatal: log };

beforeEach(async () => {
  [seen, errors, events] = [[], [], []];
  secrets = new Set();
  server = await RedisServer.start();
  hold = await holdIds(server);
  monitor = await server.client.monitor();
  monitor.on('monitor', (_time: string, args: string[]) =>
    args.forEach((arg) => [UUID, hold].flatMap((ids) => arg.match(ids) ?? []).forEach((id) => secrets.add(id))),
  );
  Logger.overrideLogger(LOGGER);
  subscribe(LOCK_CHANNEL, onEvent);
  jest.spyOn(process, 'emitWarning').mockImplementation(show);
});
afterEach(async () => {
  unsubscribe(LOCK_CHANNEL, onEvent);
  jest.restoreAllMocks();
  Logger.overrideLogger(true);
  monitor.disconnect();
  await server.stop();
});

/** The data that somebody who logs an error could show of it. */
async function fails(call: Promise<unknown>): Promise<void> {
  const error = await call.then(
    () => Promise.reject(new Error('nothing was thrown')),
    (failure: LockError) => failure,
  );
  errors.push(error);
  show(error);
  show(error.cause);
  seen.push(error.message, error.detail, error.stack ?? '', String(error));
}

function expectNoSecrets(): void {
  const told = seen.join('\n');
  expect([...secrets].filter((secret) => told.includes(secret))).toEqual([]);
}

@Controller()
class Customers {
  @Get('busy')
  @DistributedLock({ key: 'taken', wait: 0 })
  async busy(): Promise<void> {}

  @Get('lost')
  @DistributedLock({ key: 'k', ttl: 100, renew: false })
  async lost(): Promise<void> {
    await sleep(150);
  }
}

async function openStore(): Promise<RedisLockStore> {
  const store = new RedisLockStore(server.url);
  await store.open({ prefix: 'lock', warn: (message) => void seen.push(message) });
  return store;
}

describe('owners, holds and tickets', () => {
  test('are new for each acquisition, secrets are random, and the store has the digest of what a ticket has', async () => {
    const store = await openStore();
    const locks = makeLocks(store);
    const holds: string[] = [];
    const secretsOfTickets: string[] = [];
    const owners: string[] = [];
    for (let round = 0; round < 100; round++) {
      await locks.withLock('k', async (lock) => {
        const { fence } = lock;
        const ticket = lock.makeTicket();
        const { owner = '', ...others } = await server.client.hgetall('lock:lock:{k}');
        const [id] = Object.keys(others).flatMap((field) => field.split('hold:').slice(1));
        const [[key, secret, number]] = JSON.parse(Buffer.from(ticket, 'base64url').toString()) as [[string, string, number]];
        expect([key, number]).toEqual(['k', fence]);
        // The store has no more of the secret than its digest.
        expect(owner).toBe(createHash('sha256').update(secret).digest('base64url').slice(0, 22));
        holds.push(id as string);
        secretsOfTickets.push(secret);
        owners.push(owner);
      });
    }
    expect(new Set([...holds, ...secretsOfTickets, ...owners]).size).toBe(300);
    expect(holds.filter((id) => id.replace(hold, '') !== '')).toEqual([]);
    expect(secretsOfTickets.filter((secret) => !SECRET.test(secret))).toEqual([]);
    await store.close();
  });

  test('are in no log, event, warning, inspection and HTTP answer, and in no error, wherever one looks', async () => {
    const store = await openStore();
    const few = makeLocks(await openStore(), { maxWaiters: { perKey: 0, perProcess: 0 } });
    const module = await Test.createTestingModule({
      imports: [LockModule.forRoot({ store: new RedisLockStore(server.url) })],
      controllers: [Customers],
    }).compile();
    const app = module.createNestApplication({ logger: LOGGER });
    await app.init();
    const locks = module.get(LockService);
    const others = makeLocks(store);
    const ticketOf = (ticket: string): string => {
      const entries = JSON.parse(Buffer.from(ticket, 'base64url').toString()) as [string, string][];
      [ticket, ...entries.map(([, secret]) => secret)].forEach((secret) => secrets.add(secret));
      return ticket;
    };

    // Not acquired: busy, aborted, too many, a cycle.
    const taken = await locks.acquire('taken', { by: 'Balance.credit' });
    const ticket = ticketOf(taken.makeTicket());
    await fails(others.acquire('taken', { wait: 30 }));
    await fails(others.acquire('taken', { signal: AbortSignal.timeout(30) }));
    await fails(few.acquire('taken'));
    await fails(taken.run(() => cycle(locks)));
    show(await others.operations.inspect('taken'));

    // Lost: expired, forced, released, maxHold, gone.
    await fails(locks.withLock('k', { ttl: 100, renew: false }, () => sleep(150)));
    await locks.withLock('k', { ttl: '3s' }, () => until('a renewal', async () => events.some(({ type }) => type === 'renewed')));
    await fails(locks.withLock('k', { ttl: 1_000, maxHold: 20 }, (lock) => until('its end', () => !lock.isHeld())));
    await fails(locks.withLock('k', () => server.client.del('lock:lock:{k}')));
    await fails(
      locks.withLock('k', async ({ fence, signal }) => {
        await others.operations.forceRelease('k', { fence });
        await until('the loss', () => signal.aborted);
      }),
    );
    const released = await locks.acquire('k');
    await Promise.all([released.release(), released.release()]);
    await fails(Promise.resolve().then(() => released.assertHeld()));

    // Tickets: of another key, changed, of a lock that has ended, one too many.
    const ended = ticketOf(await locks.withLock('ended', (lock) => lock.makeTicket()));
    await fails(others.acquire('k', { ticket }));
    await fails(others.acquire('taken', { ticket: ticket.slice(0, -9) }));
    await fails(others.acquire('ended', { ticket: ended }));

    // Keys and options.
    await fails(locks.acquire(''));
    await fails(locks.acquire('k', { ttl: 1 }));

    // HTTP, as Nest answers by itself, and with the filter.
    const http = request(app.getHttpServer());
    for (const filter of [false, true]) {
      if (filter) {
        app.useGlobalFilters(new LockExceptionFilter());
      }
      for (const path of ['busy', 'lost']) {
        const { status, text, headers } = await http.get(`/${path}`);
        expect(status).toBe(path === 'busy' ? 423 : 500);
        show([text, headers]);
        seen.push(text);
      }
    }

    // A server that refuses, and one that is gone: ioredis puts the command and its arguments into its errors.
    const kept = await locks.acquire('kept', { ttl: 3_000 });
    const last = await locks.acquire('last', { ttl: '1m' });
    [kept, last].forEach((lock) => ticketOf(lock.makeTicket()));
    await server.client.acl('SETUSER', 'default', '-evalsha', '-eval');
    await fails(locks.acquire('k', { wait: 0 }));
    // Its renewal is refused meanwhile.
    await sleep(1_300);
    await server.client.acl('SETUSER', 'default', '+evalsha', '+eval');
    await server.client.config('SET', 'maxmemory', '1');
    await fails(locks.acquire('k', { wait: 0 }));
    await server.kill();
    await fails(locks.acquire('k', { wait: 0 }));
    await Promise.all([kept.release(), last.release()]);
    await app.close();
    await fails(locks.acquire('k'));
    await Promise.all([store.close(), few.shutdown()]);

    expect(new Set(errors.map((error) => ('reason' in error ? `${error.code} ${String(error.reason)}` : error.code)))).toEqual(
      new Set([
        ...['busy', 'aborted', 'tooManyWaiters', 'cycle', 'shutdown'].map((reason) => `LOCK_NOT_ACQUIRED ${reason}`),
        ...['expired', 'maxHold', 'forced', 'released'].map((reason) => `LOCK_LOST ${reason}`),
        'LOCK_CONFIGURATION',
        'LOCK_KEY',
        'LOCK_STORE',
      ]),
    );
    // Whether the store is seen to answer again before it is gone is a matter of time.
    const types = new Set(events.map(({ type }) => type));
    types.delete('storeAnswered');
    expect(types).toEqual(
      new Set([
        ...['acquired', 'waited', 'refused', 'cycle', 'renewed', 'released'],
        ...['lost', 'forced', 'releaseFailed', 'storeUnavailable'],
      ]),
    );
    for (const said of ['was released twice', "store 'default' is unavailable", 'Customers.lost was lost', 'Mapped {/busy']) {
      expect(seen.some((text) => text.includes(said))).toBe(true);
    }
    expect(secrets.size).toBeGreaterThan(40);
    expectNoSecrets();
  });

  test('are not shown by a lock that is logged, nor by what refers to it', async () => {
    const store = await openStore();
    await makeLocks(store).withLock(['a', 'b'], async (lock) => {
      secrets.add(lock.makeTicket());
      show(lock);
      show({ request: { locks: [lock, currentLock()] } });
      // Node before 24 keeps the async context on timers and sockets, where inspecting them shows it.
      const timer = setTimeout(() => undefined, 1);
      seen.push(inspect(timer, { depth: 10, showHidden: true }));
      expect(JSON.parse(JSON.stringify(lock))).toEqual({ keys: ['a', 'b'], fences: [lock.fenceOf('a'), lock.fenceOf('b')], isHeld: true });
    });
    await sleep(20);
    expect(secrets.size).toBeGreaterThan(2);
    expectNoSecrets();
    await store.close();
  });
});

/** Two calls that wait for each other. */
async function cycle(locks: LockService): Promise<unknown> {
  const both = (first: string, second: string): Promise<unknown> =>
    locks.withLock(first, async () => sleep(20).then(() => locks.withLock(second, () => undefined)));
  return Promise.all([both('a', 'b'), both('b', 'a')]);
}
