import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { PostgresServer } from '../support/postgres-server';
import { LIBRARIES } from './accounts';
import { check, CREDITS, type Findings } from './checks';
import { LEFT_BEHIND } from './left-behind';

const run = promisify(execFile);

let server: PostgresServer;

beforeAll(async () => {
  server = await PostgresServer.start();
  await server.query('CREATE TABLE balance (id int PRIMARY KEY, amount int NOT NULL)');
  await server.query('INSERT INTO balance VALUES (1, 0)');
}, 60_000);
afterAll(() => server.stop());

function expectHeldToTheCommit(findings: Findings): void {
  const { unfollowed, ...others } = findings;
  expect(others).toEqual({
    followed: CREDITS,
    afterOthers: Object.fromEntries(Object.keys(LEFT_BEHIND).map((way) => [way, CREDITS])),
    rollback: { isTaken: true, amount: 0 },
    isEntered: true,
    savepoint: { isTaken: true, amount: 9 },
    isLeft: false,
  });
  // The control: without the option updates are lost.
  expect(unfollowed).toBeLessThan(CREDITS);
}

test.each(Object.entries(LIBRARIES))(
  'a lock inside a transaction of %s is held until it has ended, wherever that begins',
  async (_name, open) => {
    const account = await open(server);
    try {
      expectHeldToTheCommit(await check(account));
    } finally {
      await account.close();
    }
  },
  60_000,
);

test('a lock inside a transaction of @nestjs-cls/transactional is held until it has ended, wherever that begins', async () => {
  const args = ['--import', './test/support/typescript.mjs', 'test/transaction/nestjs-cls.ts', server.url];
  const { stdout } = await run(process.execPath, args, { timeout: 50_000 });
  expectHeldToTheCommit(JSON.parse(stdout) as Findings);
}, 60_000);
