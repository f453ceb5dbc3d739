import { jest } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockStoreError } from '../../lib/core/words/errors';
import { ServerClock } from '../../lib/kit/server-clock';
import { Membership } from '../../lib/quorum/members/membership';
import type { QuorumServer } from '../../lib/quorum/members/quorum-server';
import { Session } from '../../lib/quorum/members/session';
import type { QuorumCommands } from '../../lib/quorum/votes/quorum-commands';
import { until } from '../support/until';

const LONGEST_MS = 60_000;
const HOUR_MS = 3_600_000;

/** A server that remembers that it counts, and answers reports as the test has it. */
class Server {
  readonly name: string;
  session = new Session(new ServerClock());
  /** The requests of the reports to it. */
  readonly asked: string[] = [];
  answers = true;
  aheadMs = 0;
  /** The promise that the answer to a report that has it count waits for. */
  held: Promise<unknown> | undefined;

  constructor(name: string) {
    this.name = name;
  }

  get clockMs(): number | undefined {
    return this.session.clock.now();
  }

  readonly plain = { info: () => Promise.resolve(`run_id:${this.name}\r\nmaxmemory_policy:noeviction`) };

  async ask({ counts }: { readonly counts: string }): Promise<{ readonly reply: readonly unknown[] }> {
    this.asked.push(counts);
    if (!this.answers) {
      throw new LockStoreError('no answer', '', { unknown: true });
    }
    await (counts === 'again' && this.held);
    return { reply: [HOUR_MS, 1, HOUR_MS, 0, 1, Date.now() + this.aheadMs] };
  }

  close(): void {}
}

const STANDING = { knownMs: HOUR_MS, counts: true, firstUseMs: HOUR_MS, restarted: false, fence: 1, reported: [] };

let servers: [Server, Server, Server];
let membership: Membership;

beforeEach(() => {
  servers = ['a', 'b', 'c'].map((name) => new Server(name)) as [Server, Server, Server];
  membership = new Membership(servers as unknown as QuorumServer[], { report: (report: object) => report } as unknown as QuorumCommands, {
    longestLeaseMs: LONGEST_MS,
    readOnly: false,
    warn: () => undefined,
  });
});
afterEach(() => {
  jest.restoreAllMocks();
  membership.close();
});

function connect(): Promise<unknown> {
  servers.forEach(({ session }, at) => membership.connected(at, session));
  return membership.open();
}

/** The first server has a new connection, on which it is asked once. */
async function connectAnew(): Promise<void> {
  const [server] = servers;
  const before = server.asked.length;
  server.session = new Session(server.session.clock);
  membership.connected(0, server.session);
  await until('an answer', () => server.asked.length > before && server.session.standing !== undefined);
}

test('servers that count already do so once all have been asked whether others count in their place', async () => {
  await connect();
  expect([0, 1, 2].map((place) => membership.mayCount(place))).toEqual([true, true, true]);
});

test('none counts while one does not answer that has answered not long ago: it may know of another one in its place', async () => {
  const [, , last] = servers;
  const ask = last.ask.bind(last);
  last.ask = async (report) => {
    last.answers = last.asked.length < 1;
    return ask(report);
  };
  const opening = connect();
  await until('three rounds', () => servers.every(({ asked }) => asked.length > 3));
  expect(servers.flatMap(({ asked }) => asked)).not.toContain('again');
  expect([0, 1].map((place) => membership.mayCount(place))).toEqual([false, false]);
  last.ask = ask;
  last.answers = true;
  await until('the votes', () => membership.mayCount(0));
  await opening;
});

test('a majority waits two seconds for a server that does not answer, which may know of another one in the place of one of them', async () => {
  const [first, second] = servers;
  [first, second].forEach(({ session }, at) => membership.connected(at, session));
  const startedAt = performance.now();
  await until('the votes', () => membership.mayCount(0) && membership.mayCount(1));
  expect(performance.now() - startedAt).toBeGreaterThan(1_990);
});

test('a majority does not wait for a server that refuses the connection at the start', async () => {
  const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
  servers[2].plain.info = () => Promise.reject(new LockStoreError('refused', '', { unknown: false, cause: refused }));
  const now = performance.now();
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  servers.slice(0, 2).forEach(({ session }, at) => membership.connected(at, session));
  await membership.open();
  expect([0, 1].map((place) => membership.mayCount(place))).toEqual([true, true]);
});

test('one that answers only when what was said before is about to be forgotten does not count by that', async () => {
  const [first, , last] = servers;
  let answer = (): void => undefined;
  first.held = new Promise<void>((resolve) => (answer = resolve));
  const opening = connect();
  await until('the report', () => first.asked.includes('again'));
  await sleep(2_100);
  first.held = undefined;
  // No other round comes to its end meanwhile.
  last.answers = false;
  const { length } = last.asked;
  answer();
  await until('the next round', () => last.asked.length > length + 1);
  expect(membership.mayCount(0)).toBe(false);
  last.answers = true;
  await until('the votes', () => membership.mayCount(0));
  await opening;
});

test('a new connection to a server that was heard of not long ago counts at once, by both clocks', async () => {
  await connect();
  servers[2].answers = false;
  await connectAnew();
  expect(membership.mayCount(0)).toBe(true);
  // The machine of this process slept: its own clock stood still.
  servers[0].aheadMs = HOUR_MS;
  await connectAnew();
  expect(membership.mayCount(0)).toBe(false);
});

test('a server that counts and did not answer is asked again soon, and not as seldom as one that did', async () => {
  await connect();
  const [server] = servers;
  await connectAnew();
  server.answers = false;
  server.session = new Session(server.session.clock);
  server.session.foundRun(server.name);
  server.session.answered({ ...STANDING, at: performance.now() }, true, Infinity);
  const before = server.asked.length;
  membership.connected(0, server.session);
  await until('three more', () => server.asked.length >= before + 3, 10_000);
  expect(membership.mayCount(0)).toBe(true);
});

test('what was heard long ago is not trusted, before anybody has asked again', async () => {
  await connect();
  expect(membership.mayCount(0)).toBe(true);
  const now = performance.now.bind(performance);
  jest.spyOn(performance, 'now').mockImplementation(() => now() + LONGEST_MS);
  expect(membership.mayCount(0)).toBe(false);
});

test('a server whose vote came too long after its last report has no vote until the next one, whatever its clock says then', () => {
  const session = new Session(new ServerClock());
  const report = (): void => session.answered({ ...STANDING, at: performance.now() }, true, 1_000);
  report();
  expect([session.countsAt(999), session.counts]).toEqual([true, true]);
  expect([session.countsAt(1_000), session.counts]).toEqual([false, false]);
  // Its clock was set back.
  expect([session.countsAt(999), session.counts]).toEqual([false, false]);
  report();
  expect([session.countsAt(999), session.counts]).toEqual([true, true]);
});
