import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PostgresServer } from '../support/postgres-server';
import { RedisServer } from '../support/redis-server';
import { goOn, stopProcess } from '../support/stopping';
import { until } from '../support/until';

let postgres: PostgresServer;
let redis: RedisServer;
/** The shop that the credits ask between their read and their write; a test answers. */
let shop: Server;
const asked: ServerResponse[] = [];
const functions: ChildProcess[] = [];

beforeAll(async () => {
  shop = createServer((_request, response) => asked.push(response)).listen(0, '127.0.0.1');
  [postgres, redis] = await Promise.all([PostgresServer.start(), RedisServer.start(), once(shop, 'listening')]);
  await postgres.query('CREATE TABLE balances (customer_id text PRIMARY KEY, amount int NOT NULL, fence bigint NOT NULL DEFAULT 0)');
}, 120_000);
afterAll(async () => {
  functions.forEach((child) => child.kill('SIGKILL'));
  shop.closeAllConnections();
  shop.close();
  await Promise.all([postgres.stop(), redis.stop()]);
});
beforeEach(async () => {
  await postgres.query('DELETE FROM balances');
  await postgres.query("INSERT INTO balances VALUES ('42', 0)");
});

/** An instance of the function of the page, which nobody has called yet. */
async function startFunction(): Promise<ChildProcess> {
  const child = fork('test/readme/functions-runtime.ts', {
    execArgv: ['--import', './test/support/typescript.mjs'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: {
      ...process.env,
      DATABASE_URL: postgres.url,
      REDIS_URL: redis.url,
      SHOP_URL: `http://127.0.0.1:${(shop.address() as AddressInfo).port}`,
    },
  });
  functions.push(child);
  await once(child, 'message');
  return child;
}

/** Calls it; what it answers. */
async function credit(child: ChildProcess, amount: number): Promise<string> {
  child.send({ customerId: '42', amount });
  const [answer] = (await once(child, 'message')) as [string];
  return answer;
}

/** The next question of a credit. */
async function question(): Promise<ServerResponse> {
  await until('a credit asks the shop', () => asked.length > 0);
  return asked.shift() as ServerResponse;
}

async function balance(): Promise<unknown> {
  const [row] = await postgres.query('SELECT amount FROM balances');
  return row?.['amount'];
}

test('a call that was frozen past its lease writes late, and its fence refuses it, as printed', async () => {
  const [frozen, other] = await Promise.all([startFunction(), startFunction()]);
  const late = credit(frozen, 1);
  const ofFrozen = await question();
  stopProcess(frozen.pid);
  try {
    const next = credit(other, 10);
    (await question()).end('0');
    expect(await next).toBe('credited');
    expect(await balance()).toBe(10);
  } finally {
    goOn(frozen.pid);
  }
  ofFrozen.end('0');
  expect(await late).toBe('Error: a later owner was here');
  expect(await balance()).toBe(10);
});

test('an instance that was frozen between calls locks again, though its connections were cut meanwhile, as printed', async () => {
  const child = await startFunction();
  const first = credit(child, 1);
  (await question()).end('0');
  expect(await first).toBe('credited');
  expect(await redis.client.keys('lock:lock:*')).toEqual([]);
  stopProcess(child.pid);
  try {
    await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal');
    await redis.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  } finally {
    goOn(child.pid);
  }
  const second = credit(child, 10);
  (await question()).end('0');
  expect(await second).toBe('credited');
  expect(await balance()).toBe(11);
});
