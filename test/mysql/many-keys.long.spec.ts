import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { MySqlLockStore } from '../../lib/mysql/index';
import { DATABASE, MySqlServer } from '../support/mysql-server';

const PROCESSES = 4;
/** For how long they contend, in milliseconds: a wake-up that stopped the server would do so about once a second. */
const MS = 3_000;
/** A pause that no process or server makes by standing still for a moment, in milliseconds. */
const PAUSE_MS = 1_000;

interface Told {
  readonly grants: readonly { readonly key: number; readonly grantedAt: number; readonly releasedAt: number }[];
  readonly failures: readonly string[];
}

let server: MySqlServer;
let children: ChildProcess[] = [];

beforeAll(async () => {
  server = await MySqlServer.start();
  await new MySqlLockStore(server.pool()).ensureSchema();
  const url = `mysql://root@127.0.0.1:${server.port}/${DATABASE}`;
  children = Array.from({ length: PROCESSES }, () => fork('test/fixtures/contenders.mjs', [url], { execArgv: [] }));
  await Promise.all(children.map((child) => answerOf(child)));
});
afterAll(async () => {
  children.forEach((child) => child.kill('SIGKILL'));
  await server.stop();
});

/** The next message of a process; rejects where the process ends instead. */
async function answerOf(child: ChildProcess): Promise<unknown> {
  const isOver = new AbortController();
  const { signal } = isOver;
  const ended = once(child, 'exit', { signal }).then(([code]) => {
    throw new Error(`A process ended with ${String(code)}.`);
  });
  try {
    const [message] = (await Promise.race([once(child, 'message', { signal }), ended])) as unknown[];
    return message;
  } finally {
    isOver.abort();
    ended.catch(() => undefined);
  }
}

test.each([3, 8])(
  'four processes that contend for %s keys hand them over all the time, and no release fails',
  async (keys) => {
    const told = children.map((child) => answerOf(child) as Promise<Told>);
    children.forEach((child) => child.send({ keys, ms: MS }));
    const all = await Promise.all(told);

    expect(all.flatMap(({ failures }) => failures)).toEqual([]);
    const times = Array.from({ length: keys }, (_, key) => handOvers(all, key)).flat();
    const sorted = times.toSorted((one, other) => one - other);
    const at = (part: number): string => (sorted[Math.floor((sorted.length - 1) * part)] as number).toFixed(1);
    const pauses = pausesOf(all);
    console.log(
      `${sorted.length} hand-overs of ${keys} keys: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms; pauses of all keys: ${pauses.map((ms) => ms.toFixed(0)).join(', ') || 'none'}.`,
    );
    // MariaDB stopped for two seconds, about once a second, where two wake-ups met: most of the time nobody was granted
    // anything.
    expect(pauses.reduce((sum, ms) => sum + ms, 0)).toBeLessThan(MS / 2);
    expect(sorted.length).toBeGreaterThan(0);
  },
  60_000,
);

test('and end by themselves', async () => {
  const ended = children.map((child) => once(child, 'exit'));
  children.forEach((child) => child.send({ keys: 0 }));
  expect(await Promise.all(ended)).toEqual(children.map(() => [0, null]));
});

/** The pauses in which no process was granted any key, in milliseconds. */
function pausesOf(all: readonly Told[]): number[] {
  const times = all.flatMap(({ grants }) => grants.map(({ grantedAt }) => grantedAt)).toSorted((one, other) => one - other);
  return times
    .slice(1)
    .map((time, at) => time - (times[at] as number))
    .filter((ms) => ms > PAUSE_MS);
}

/** The times from a release in one process to the grant in another one, in milliseconds. */
function handOvers(all: readonly Told[], key: number): number[] {
  const grants = all
    .flatMap((each, process) => each.grants.map((grant) => ({ ...grant, process })))
    .filter((grant) => grant.key === key)
    .toSorted((one, other) => one.grantedAt - other.grantedAt);
  return grants.slice(1).flatMap(({ process, grantedAt }, at) => {
    const before = grants[at] as (typeof grants)[number];
    return before.process === process ? [] : [grantedAt - before.releasedAt];
  });
}
