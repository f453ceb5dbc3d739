import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { schemaSql } from 'nestjs-distributed-lock/postgres';
import { PostgresServer } from '../support/postgres-server';
import { RedisServer } from '../support/redis-server';

const ACCOUNTS = ['ann', 'ben', 'cid', 'dot'];
const START = 1_000;
/** Of each of the two processes. */
const TRANSFERS = 60;
const CALLERS = 8;

interface State {
  readonly balance: number;
  readonly transfers: number;
}
type States = Record<string, State>;
type Transfer = readonly [from: string, to: string, amount: number];

let redis: RedisServer;
let postgres: PostgresServer;
const children: ChildProcess[] = [];
beforeAll(async () => {
  [redis, postgres] = await Promise.all([RedisServer.start(), PostgresServer.start()]);
});
afterAll(async () => {
  for (const child of children) {
    child.kill('SIGKILL');
  }
  await Promise.all([redis.stop(), postgres.stop()]);
});

/** Transfers between all pairs of accounts, in both directions, so that calls name the same keys in either order. */
function planOf(offset: number): Transfer[] {
  return Array.from({ length: TRANSFERS }, (_, index) => {
    const from = (index + offset) % ACCOUNTS.length;
    const to = (from + 1 + (index % (ACCOUNTS.length - 1))) % ACCOUNTS.length;
    return [ACCOUNTS[from] as string, ACCOUNTS[to] as string, 1 + ((index * 7 + offset) % 13)];
  });
}

/** The balances of the accounts after these transfers, in whatever order. */
function statesAfter(transfers: readonly Transfer[]): States {
  const states = Object.fromEntries(ACCOUNTS.map((account) => [account, { balance: START, transfers: 0 }]));
  const change = (account: string, amount: number): void => {
    const { balance, transfers: count } = states[account] as State;
    states[account] = { balance: balance + amount, transfers: count + 1 };
  };
  for (const [from, to, amount] of transfers) {
    change(from, -amount);
    change(to, amount);
  }
  return states;
}

async function startProcess(url: string, plan: readonly Transfer[]): Promise<ChildProcess> {
  const child = fork('test/fixtures/wallet.mjs', [url, JSON.stringify(plan), String(CALLERS)], { stdio: 'inherit' });
  children.push(child);
  const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`the wallet ended with ${code}`)));
  await Promise.race([once(child, 'message'), ended]);
  ended.catch(() => undefined);
  return child;
}

const WALLETS: readonly [string, () => { url: string; open: () => Promise<void>; states: () => Promise<States> }][] = [
  [
    'values in Redis',
    () => ({
      url: redis.url,
      open: async () => {
        await Promise.all(
          ACCOUNTS.map((account) => redis.client.set(`account:${account}`, JSON.stringify({ balance: START, transfers: 0 }))),
        );
      },
      states: async () => {
        const texts = await Promise.all(ACCOUNTS.map((account) => redis.client.get(`account:${account}`)));
        return Object.fromEntries(ACCOUNTS.map((account, index) => [account, JSON.parse(texts[index] as string) as State]));
      },
    }),
  ],
  [
    'rows of PostgreSQL',
    () => ({
      url: postgres.url,
      open: async () => {
        await postgres.query(schemaSql());
        await postgres.query('CREATE TABLE accounts (id text PRIMARY KEY, balance int NOT NULL, transfers int NOT NULL)');
        await postgres.query('INSERT INTO accounts SELECT unnest($1::text[]), $2, 0', [ACCOUNTS, START]);
      },
      states: async () => {
        const rows = await postgres.query<State & { id: string }>('SELECT id, balance, transfers FROM accounts');
        return Object.fromEntries(rows.map(({ id, ...state }) => [id, state]));
      },
    }),
  ],
];

test.each(WALLETS)('transfers of two processes keep all money, and each is counted once: %s', async (_, make) => {
  const wallet = make();
  await wallet.open();
  const plans = [planOf(0), planOf(3)];
  const processes = await Promise.all(plans.map((plan) => startProcess(wallet.url, plan)));
  const ends = processes.map((child) => once(child, 'exit'));
  processes.forEach((child) => child.send('go'));
  expect(await Promise.all(ends)).toEqual([
    [0, null],
    [0, null],
  ]);

  const states = await wallet.states();
  const all = Object.values(states);
  expect(all.reduce((sum, { balance }) => sum + balance, 0)).toBe(ACCOUNTS.length * START);
  expect(all.reduce((sum, { transfers }) => sum + transfers, 0)).toBe(2 * plans.flat().length);
  expect(states).toEqual(statesAfter(plans.flat()));
});
