import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';

// Each starts processes of its own, which takes a while on a machine that is busy.
jest.setTimeout(240_000);

/** A call that has a permit, by the clock of the machine. */
interface Stay {
  readonly tenant: string;
  readonly permits: number;
  /** Whether it lasts until it is told to end. */
  readonly lasts: boolean;
  readonly from: number;
  to: number;
}

type Message =
  | ({ readonly event: 'in'; readonly id: number; readonly at: number } & Pick<Stay, 'tenant' | 'permits' | 'lasts'>)
  | { readonly event: 'out'; readonly id: number; readonly at: number }
  | { readonly event: 'failed'; readonly why: string };

const now = (): number => Number(process.hrtime.bigint()) / 1e6;

/** An application in a process of its own, whose calls are limited for each tenant. */
class Application {
  static readonly all: Application[] = [];
  readonly child: ChildProcess;
  readonly failures: string[] = [];
  readonly #stays = new Map<number, Stay>();

  private constructor(url: string, permits: number, ttlMs: number) {
    this.child = fork('test/fixtures/erp.mjs', [url, String(permits), String(ttlMs)], { execArgv: [] });
    this.child.on('message', (message) => this.#hear(message as Message));
    Application.all.push(this);
  }

  static async start(url: string, permits: number, ttlMs: number): Promise<Application> {
    const application = new Application(url, permits, ttlMs);
    await once(application.child, 'message');
    return application;
  }

  get stays(): readonly Stay[] {
    return [...this.#stays.values()];
  }

  /** How many calls of a tenant have a permit, of those that last. */
  inside(tenant: string): number {
    return this.stays.filter((stay) => stay.tenant === tenant && stay.lasts && stay.to === Infinity).length;
  }

  tell(task: string, options: object = {}): void {
    this.child.send({ task, ...options });
  }

  async close(): Promise<void> {
    const exited = once(this.child, 'exit');
    this.tell('close');
    expect(await exited).toEqual([0, null]);
  }

  async kill(): Promise<void> {
    const exited = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    const at = now();
    await exited;
    // It can say nothing any more.
    this.stays.forEach((stay) => (stay.to = Math.min(stay.to, at)));
  }

  #hear(message: Message): void {
    if (message.event === 'in') {
      const { id, tenant, permits, lasts, at } = message;
      this.#stays.set(id, { tenant, permits, lasts, from: at, to: Infinity });
    } else if (message.event === 'out') {
      (this.#stays.get(message.id) as Stay).to = message.at;
    } else if (message.event === 'failed') {
      this.failures.push(message.why);
    }
  }
}

/** The most calls of a tenant that were in at once; and those that were too many, by the smallest count of theirs. */
function judge(tenant: string): { readonly most: number; readonly tooMany: readonly string[] } {
  const stays = Application.all.flatMap((application) => application.stays).filter((stay) => stay.tenant === tenant);
  let inside: Stay[] = [];
  let most = 0;
  const tooMany: string[] = [];
  for (const stay of stays.toSorted((first, second) => first.from - second.from)) {
    inside = [...inside.filter(({ to }) => to > stay.from), stay];
    most = Math.max(most, inside.length);
    const count = Math.min(...inside.map(({ permits }) => permits));
    if (inside.length > count) {
      tooMany.push(`${inside.length} of ${count} at ${stay.from}`);
    }
  }
  return { most, tooMany };
}

const failures = (): string[] => Application.all.flatMap((application) => application.failures);
const insideAll = (tenant: string): number => Application.all.reduce((sum, application) => sum + application.inside(tenant), 0);

let server: RedisServer;
beforeEach(async () => {
  server = await RedisServer.start();
});
afterEach(async () => {
  Application.all.splice(0).forEach(({ child }) => child.kill('SIGKILL'));
  await server.stop();
});

test('a count goes from 50 to 20 and back, one process after the other, while all make calls', async () => {
  const tenant = 'acme';
  const start = async (permits: number): Promise<Application> => {
    const application = await Application.start(server.url, permits, 10_000);
    application.tell('load', { tenant, callers: 15 });
    return application;
  };
  let applications = await Promise.all([50, 50, 50, 50].map(start));
  /** Fills the semaphore, beside the calls that go on: so many are in, and no more. */
  const expectRoomFor = async (permits: number): Promise<void> => {
    applications.forEach((application) => application.tell('hold', { tenant, callers: 20 }));
    await until(`${permits} of them are in`, () => insideAll(tenant) >= permits);
    await sleep(300);
    expect(insideAll(tenant)).toBe(permits);
    applications.forEach((application) => application.tell('end'));
  };
  await expectRoomFor(50);
  // A deploy: each is replaced by one with the smaller count, which is there before the old one goes.
  for (const old of applications) {
    const next = await start(20);
    applications = [...applications.filter((application) => application !== old), next];
    await old.close();
  }
  await expectRoomFor(20);
  // A setting that all processes read anew.
  for (const application of applications) {
    application.tell('count', { permits: 50 });
    await sleep(250);
  }
  await expectRoomFor(50);
  await Promise.all(applications.map((application) => application.close()));
  expect(judge(tenant)).toEqual({ most: 50, tooMany: [] });
  expect(failures()).toEqual([]);
  expect(await server.client.keys('lock:lock:*')).toEqual([]);
});

test('what a killed process had of a semaphore comes back after its ttl, and other tenants do not notice', async () => {
  const ttlMs = 3_000;
  const [killed, other] = (await Promise.all([1, 2].map(() => Application.start(server.url, 5, ttlMs)))) as [Application, Application];
  killed.tell('hold', { tenant: 'acme', callers: 3 });
  await until('three are in', () => killed.inside('acme') === 3);
  other.tell('hold', { tenant: 'acme', callers: 6 });
  await until('two more are in', () => other.inside('acme') === 2);
  const killedAt = now();
  await killed.kill();
  other.tell('hold', { tenant: 'globex', callers: 5 });
  await until('the other tenant has its own', () => other.inside('globex') === 5);
  await until('its permits came back', () => other.inside('acme') === 5);
  const [, , back] = other.stays.filter(({ tenant }) => tenant === 'acme').map(({ from }) => from);
  // It renewed them last a third of their lease before, or later.
  expect((back as number) - killedAt).toBeGreaterThan(ttlMs / 3);
  await sleep(300);
  expect(other.inside('acme')).toBe(5);
  await other.close();
  expect(judge('acme')).toEqual({ most: 5, tooMany: [] });
  expect(judge('globex')).toEqual({ most: 5, tooMany: [] });
  expect(failures()).toEqual([]);
});
