import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { RedisServer } from '../support/redis-server';

/** The report of `test/fixtures/restarting.mjs` from inside the last calls. */
interface Report {
  readonly ticks?: number;
  /** Locks of calls, the last ones included, that are still in memory. */
  readonly alive?: number;
  readonly bytesPerTick?: number;
  readonly failure?: string;
}

let server: RedisServer;
let child: ChildProcess;

beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());
afterEach(() => child.kill('SIGKILL'));

// A call that is not forgotten takes 550 bytes or more.
test.each([
  ['memory', 'left', 250],
  ['memory', 'inside', 250],
  ['redis', 'left', 250],
  ['redis', 'inside', 250],
] as const)(
  'methods on the %s store that restart themselves ten times a second, once they have left or while inside (%s), leave nothing in memory after an hour',
  async (store, way, mostBytes) => {
    child = fork('test/fixtures/restarting.mjs', [store === 'redis' ? server.url : '', way], { execArgv: ['--expose-gc'] });
    const exited = once(child, 'exit');
    const [report] = (await once(child, 'message')) as [Report];
    expect(report).toEqual({ ticks: 36_000, alive: expect.any(Number) as number, bytesPerTick: expect.any(Number) as number });
    // Of each of the ten methods the last call, and a few before it.
    expect(report.alive).toBeLessThanOrEqual(100);
    expect(report.bytesPerTick).toBeLessThan(mostBytes);
    expect(await exited).toEqual([0, null]);
  },
  // An hour of calls is 4 to 13 s of work, and other suites want the processors too.
  120_000,
);
