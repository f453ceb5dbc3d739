import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PostgresServer } from '../support/postgres-server';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';

interface Answer {
  readonly task: string;
  readonly result?: unknown;
  readonly error?: string;
}

/** `test/readme/recipes-application.ts`, with the classes of the pages. */
class Application {
  readonly child: ChildProcess;
  logged = '';
  readonly #ended: Promise<unknown[]>;

  private constructor(addresses: readonly string[]) {
    const execArgv = ['--import', './test/support/typescript.mjs'];
    this.child = fork('test/readme/recipes-application.ts', addresses, { execArgv, silent: true });
    this.#ended = once(this.child, 'exit');
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on('data', (data) => (this.logged += String(data)));
    }
  }

  static async start(...addresses: string[]): Promise<Application> {
    const application = new Application(addresses);
    await application.#answer();
    return application;
  }

  async run(task: string): Promise<unknown> {
    this.child.send(task);
    const { error, result } = await this.#answer();
    if (error !== undefined) {
      throw new Error(`${task}: ${error}\n${this.logged}`);
    }
    return result;
  }

  async #answer(): Promise<Answer> {
    const [answer] = (await Promise.race([once(this.child, 'message'), this.#ended])) as [Answer | number | null];
    if (typeof answer !== 'object' || answer === null) {
      throw new Error(`The application ended.\n${this.logged}`);
    }
    return answer;
  }
}

let postgres: PostgresServer;
let redis: RedisServer;
let bank: Server;
/** The questions to the bank, and how many of them it has answered; it refuses the first. */
const questions: string[] = [];
let answers = 0;
let applications: readonly [Application, Application];

beforeAll(async () => {
  [postgres, redis] = await Promise.all([PostgresServer.start(), RedisServer.start()]);
  await postgres.query('CREATE TABLE balance (customer_id text PRIMARY KEY, amount int NOT NULL)');
  bank = createServer((question, response) => {
    questions.push(`${question.url}, ${questions.length - answers} others at once`);
    setTimeout(() => {
      response.writeHead(answers++ === 0 ? 503 : 200).end('1.08');
    }, 200);
  }).listen(0, '127.0.0.1');
  await once(bank, 'listening');
  const addresses = [postgres.url, redis.url, `http://127.0.0.1:${(bank.address() as AddressInfo).port}`];
  applications = await Promise.all([Application.start(...addresses), Application.start(...addresses)]);
}, 120_000);
afterAll(async () => {
  applications.forEach(({ child }) => child.kill('SIGKILL'));
  bank.closeAllConnections();
  bank.close();
  await Promise.all([postgres.stop(), redis.stop()]);
});

/** The answers of both processes. */
function runInBoth(task: string): Promise<readonly unknown[]> {
  return Promise.all(applications.map((application) => application.run(task)));
}

/** The amount of a balance that was 0, after both processes have credited it. */
async function creditedBy(task: string): Promise<number> {
  await postgres.query('DELETE FROM balance');
  await postgres.query("INSERT INTO balance VALUES ('42', 0)");
  await runInBoth(task);
  const [row] = await postgres.query('SELECT amount FROM balance');
  return (row as { amount: number }).amount;
}

test.each(['WithCls', 'WithTypeOrmTransactional', 'WithTypeOrm', 'WithPrisma', 'queue'])(
  'sixteen credits in two processes, by the recipe as it is printed, lose no update: %s',
  async (recipe) => {
    expect(await creditedBy(recipe)).toBe(16);
    expect(applications[0].logged).not.toContain('takes its lock inside a transaction');
  },
  60_000,
);

test('the fragments of the README run as printed', async () => {
  expect(await applications[1].run('readme')).toEqual(['recounts, aborted: false', 'report', 'removes 1']);
});

test('a job that both replicas start runs once, as printed, also where one is late', async () => {
  expect((await runInBoth('cron')).flat()).toEqual(['report']);
  expect((await runInBoth('cron')).flat()).toEqual([]);
});

test('a rate that sixteen callers in two processes want is fetched once, and once more where that failed for one of them, as printed', async () => {
  const results = (await runInBoth('rates')).flat();
  expect(results.filter((result) => result === '1.08')).toHaveLength(15);
  expect(results.filter((result) => result === 'Error: the bank answers 503')).toHaveLength(1);
  expect(questions).toEqual(['/EUR, 0 others at once', '/EUR, 0 others at once']);
});

test('a method runs at most once in its window, though the run failed or its process was killed, as printed', async () => {
  expect(await runInBoth('rebuild')).toEqual(expect.arrayContaining(['rebuilt', 'skipped']));
  expect(await applications[0].run('rebuild, which fails')).toBe('Error: the index is full');
  expect(await applications[1].run('rebuild, which fails')).toBe('skipped');
  const third = await Application.start(postgres.url, redis.url, '');
  await third.run('rebuild, which hangs');
  third.child.kill('SIGKILL');
  for (const shop of ['runs', 'fails', 'hangs']) {
    await until(`the window of ${shop} is what is left of the lease`, async () => {
      const leftMs = await redis.client.pttl(`lock:lock:{index:${shop}}`);
      return leftMs > 200_000 && leftMs <= 300_000 && third.child.signalCode !== null;
    });
  }
});

test('a task of a shared queue runs in the lock of its own request, as printed', async () => {
  const settled = (await applications[0].run('shared')) as string[];
  expect(settled.toSorted()).toEqual(['settles 1 in order:1', 'settles 2 in order:2']);
});

test('what is fired and forgotten outside of the locks waits, as printed', async () => {
  expect(await applications[0].run('events')).toEqual(['placed 3', 'ships 3']);
});

test('with the decorators of nestjs-cls swapped, the first call warns, and says why', async () => {
  await creditedBy('WithClsSwapped');
  for (const { logged } of applications) {
    expect(
      logged.match(/WithClsSwapped\.credit takes its lock inside a transaction: so says the TransactionHost of nestjs-cls\./g),
    ).toHaveLength(1);
    expect(logged).toContain('@DistributedLock() stands above a decorator that opens one');
  }
});
