import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { PostgresServer } from '../support/postgres-server';
import { RedisServer } from '../support/redis-server';

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

  private constructor(database: string, redis: string) {
    const execArgv = ['--import', './test/support/typescript.mjs'];
    this.child = fork('test/readme/recipes-application.ts', [database, redis], { execArgv, silent: true });
    this.#ended = once(this.child, 'exit');
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on('data', (data) => (this.logged += String(data)));
    }
  }

  static async start(database: string, redis: string): Promise<Application> {
    const application = new Application(database, redis);
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
let applications: readonly [Application, Application];

beforeAll(async () => {
  [postgres, redis] = await Promise.all([PostgresServer.start(), RedisServer.start()]);
  await postgres.query('CREATE TABLE balance (customer_id text PRIMARY KEY, amount int NOT NULL)');
  applications = await Promise.all([Application.start(postgres.url, redis.url), Application.start(postgres.url, redis.url)]);
}, 120_000);
afterAll(async () => {
  applications.forEach(({ child }) => child.kill('SIGKILL'));
  await Promise.all([postgres.stop(), redis.stop()]);
});

/** What both processes answer. */
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

test('a job that both replicas start runs once, as printed', async () => {
  expect((await runInBoth('cron')).flat()).toEqual(['report']);
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
