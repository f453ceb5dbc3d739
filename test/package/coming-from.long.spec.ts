/** @jest-environment-options {"allowedStopMs": 600000} */
// Its claims of time are claims of leases of ten seconds and more.
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readPage } from '../readme/pages.js';
import { RedisServer } from '../support/redis-server.js';
import { until } from '../support/until.js';
import { INSTALL_MS, Workshop, type Consumer } from './consumer.js';
import { COMMAND_MS } from './run.js';

const TEST_MS = 180_000;
/** Of each process that contends. */
const SECTIONS = 50;

interface Library {
  /** Its lock on the balance of customer 42. */
  readonly key: string;
  /** How a call of the first release ends that took longer than its lease. */
  readonly endsAs: string;
  readonly renews: boolean;
  /** The error of a call inside a call with the same key. */
  readonly refusal?: RegExp;
}

const LIBRARIES: Readonly<Record<string, Library>> = {
  murlock: {
    key: 'BalanceService:credit:42',
    renews: false,
    endsAs:
      'MurLockException: Failed to release lock for key BalanceService:credit:42: Failed to release lock for key BalanceService:credit:42',
    refusal: /^MurLockException: Failed to acquire lock /,
  },
  redlock: { key: 'balance:42', renews: true, endsAs: 'ended', refusal: /^ExecutionError: / },
  'nest-redlock': { key: 'balance:42', renews: true, endsAs: 'ended', refusal: /^ExecutionError: / },
  'nestjs-redlock-universal': { key: 'balance:42', renews: true, endsAs: 'ended', refusal: /^Error: @Redlock decorator failed for key / },
  'redis-semaphore': {
    key: 'mutex:balance:42',
    renews: true,
    endsAs: 'ended',
    refusal: /^Error: Acquire mutex mutex:balance:nested timeout/,
  },
  'set-nx': { key: 'balance:42', renews: false, endsAs: 'ended' },
};

const workshop = new Workshop();
let shop: Consumer;
let redis: RedisServer;
const children: ChildProcess[] = [];

/** Counted by a process, or by several together. */
interface Count {
  readonly sections: number;
  readonly overlaps: number;
  readonly failures: readonly string[];
}

/** A process of one release: `<library>/before`, `<library>/between` or `after`. */
class Application {
  readonly #child: ChildProcess;
  readonly #ended: Promise<never>;

  private constructor(release: string, patience: string, wait: string) {
    const args = [release, redis.url, patience, wait];
    this.#child = fork('out/main.js', args, { cwd: shop.folder, execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    this.#ended = once(this.#child, 'exit').then(([code]) => Promise.reject(new Error(`The process of ${release} ended with ${code}.`)));
    this.#ended.catch(() => undefined);
    children.push(this.#child);
  }

  static async start(release: string, { patience = 'patient', wait = '60s' } = {}): Promise<Application> {
    const application = new Application(release, patience, wait);
    await application.#answer();
    return application;
  }

  async tell(order: string, customerId = '42'): Promise<unknown> {
    this.#child.send([order, customerId]);
    return this.#answer();
  }

  count(order: 'count' | 'stop' = 'count'): Promise<Count> {
    return this.tell(order) as Promise<Count>;
  }

  async #answer(): Promise<unknown> {
    const [{ result, error }] = (await Promise.race([answer(this.#child), this.#ended])) as [{ result?: unknown; error?: string }];
    if (error !== undefined) {
      throw new Error(error);
    }
    return result;
  }
}

/** The next message of a process; none where it ends. */
const answer = (child: ChildProcess): Promise<unknown[]> =>
  new Promise((resolve) => child.once('message', (message) => resolve([message])));

beforeAll(
  async () => {
    redis = await RedisServer.start();
    await workshop.pack();
    shop = await workshop.consumer('coming-from');
    await shop.node('node_modules/typescript/bin/tsc', '-p', 'tsconfig.json');
  },
  INSTALL_MS + 2 * COMMAND_MS,
);
afterEach(async () => {
  await Promise.all(
    children.splice(0).map(async (child) => {
      const exited = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined;
      child.kill('SIGKILL');
      await exited;
    }),
  );
  await redis.client.flushall();
});
afterAll(async () => {
  await redis?.stop();
  workshop.clear();
});

const startAll = (...releases: string[]): Promise<Application[]> => Promise.all(releases.map((release) => Application.start(release)));
const inside = async (): Promise<number> => Number(await redis.client.get('inside:42'));
const sum = (counts: readonly Count[]): Count => ({
  sections: Math.min(...counts.map(({ sections }) => sections)),
  overlaps: counts.reduce((total, { overlaps }) => total + overlaps, 0),
  failures: counts.flatMap(({ failures }) => failures),
});

/** Has processes contend for one customer until it is enough; their count, with the sections of the slowest. */
async function contend(applications: readonly Application[], isEnough: (count: Count) => boolean): Promise<Count> {
  await Promise.all(applications.map((application) => application.tell('contend')));
  const count = async (order: 'count' | 'stop'): Promise<Count> => sum(await Promise.all(applications.map((one) => one.count(order))));
  await until('the sections are enough', async () => isEnough(await count('count')), TEST_MS / 2);
  return count('stop');
}

/** Expects that a process gets in beside another one. */
async function enters(application: Application): Promise<void> {
  expect(await application.tell('enter')).toBe('inside');
  expect(await inside()).toBe(2);
}

test('the page names the versions and the defaults of the libraries', async () => {
  const { dependencies } = JSON.parse(readFileSync(join(shop.folder, 'package.json'), 'utf8')) as { dependencies: Record<string, string> };
  const text = readPage('docs/coming-from.md').text.replaceAll(/\s+/g, ' ');
  for (const name of ['murlock', 'redlock', '@anchan828/nest-redlock', 'nestjs-redlock-universal', 'redis-semaphore']) {
    expect(text).toContain(`${name} ${dependencies[name]}`);
  }
  const { stdout } = await shop.node(
    '--eval',
    `const [{ default: Redlock }, { defaultTimeoutOptions }] = [require('redlock'), require('redis-semaphore/lib/misc')];
     console.log(JSON.stringify([new Redlock([{}]).settings, defaultTimeoutOptions]));`,
  );
  expect(JSON.parse(stdout)).toMatchObject([{ retryCount: 10, retryDelay: 200, driftFactor: 0.01 }, { acquireTimeout: 10_000 }]);
  expect(text).toContain('redlock 10 × 200 ms, `Mutex` 10 s');
});

describe.each(Object.entries(LIBRARIES))('an application that leaves %s', (name, { key, renews, endsAs, refusal }) => {
  const [before, between] = [`${name}/before`, `${name}/between`];

  test(
    'has overlaps where the processes of the new lock alone run beside those of the old one',
    async () => {
      const { overlaps, failures } = await contend(await startAll(before, 'after'), (count) => count.overlaps > 0);
      expect(overlaps).toBeGreaterThan(0);
      expect(failures).toEqual([]);
    },
    TEST_MS,
  );

  test(
    'has no overlap and no deadlock where the new processes take the old lock inside the new one',
    async () => {
      const { overlaps, failures } = await contend(
        await startAll(before, before, between, between),
        ({ sections, overlaps: found }) => sections >= SECTIONS || found > 0,
      );
      expect({ overlaps, failures }).toEqual({ overlaps: 0, failures: [] });
    },
    TEST_MS,
  );

  test(
    'has no overlap while the second release, which takes the new lock alone, replaces the first',
    async () => {
      const { overlaps, failures } = await contend(
        await startAll(between, between, 'after', 'after'),
        ({ sections, overlaps: found }) => sections >= SECTIONS || found > 0,
      );
      expect({ overlaps, failures }).toEqual({ overlaps: 0, failures: [] });
    },
    TEST_MS,
  );

  test(
    renews
      ? 'keeps both locks for as long as a section of the first release runs'
      : 'lets an old process in, but no new one, where a section of the first release outlives the old lease',
    async () => {
      const [first, old] = (await startAll(between, before)) as [Application, Application];
      await first.tell('enter');
      expect(await redis.client.keys('*:42*')).toEqual(expect.arrayContaining(['lock:lock:{balance:42}', key]));
      if (renews) {
        let leftMs = Infinity;
        await until('the old lease is renewed', async () => {
          const lastMs = leftMs;
          leftMs = await redis.client.pttl(key);
          return leftMs > lastMs;
        });
      } else {
        await until('the old lease is over', async () => (await redis.client.exists(key)) === 0);
        await enters(old);
        const second = await Application.start(between, { wait: '1s' });
        await expect(second.tell('enter')).rejects.toThrow('LockNotAcquiredError');
        await old.tell('leave');
      }
      expect(await inside()).toBe(1);
      expect(await first.tell('leave')).toBe(endsAs);
    },
    TEST_MS,
  );

  if (refusal) {
    test(
      'does not re-enter the old lock, not even inside the new one, and re-enters the new one alone',
      async () => {
        const [old, first, second] = (await Promise.all(
          [before, between, 'after'].map((release) => Application.start(release, { patience: 'once' })),
        )) as [Application, Application, Application];
        expect(await old.tell('nest', 'nested')).toMatch(refusal);
        expect(await first.tell('nest', 'nested')).toMatch(refusal);
        expect(await second.tell('nest', 'nested')).toBe('entered');
      },
      TEST_MS,
    );
  }
});
