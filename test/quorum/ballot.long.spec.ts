import { setTimeout as sleep } from 'node:timers/promises';
import { LockStoreError } from '../../lib/core/words/errors';
import { Ballot, type Polling } from '../../lib/quorum/votes/ballot';
import { busyReply } from '../../lib/quorum/votes/busy';
import type { Quorum } from '../../lib/quorum/quorum';
import type { Answer, QuorumServer } from '../../lib/quorum/members/quorum-server';
import { until } from '../support/until';

interface Asked<T> {
  readonly server: number;
  readonly fence?: number;
  readonly answer: (answer: T) => void;
  readonly fail: (error: Error) => void;
}

let votes: Asked<Answer>[];
let settlements: Asked<boolean>[];
let granted: number | undefined;
let busy: unknown;
let failure: unknown;
let withdrawn: number[];
let adopted: { server: number; fence: number }[];
/** Far longer than any test, unless the contest is what it is about. */
let contestMs = 60_000;

/** A ballot of five servers, whose answers come when the test gives them. */
beforeEach(() => {
  start();
});

function start(): void {
  [votes, settlements, granted, busy, failure, withdrawn, adopted] = [[], [], undefined, undefined, undefined, [], []];
  const servers = [0, 1, 2, 3, 4] as unknown as QuorumServer[];
  const polling: Polling = {
    contestMs,
    vote: (server) => new Promise((answer, fail) => votes.push({ server: Number(server), answer, fail })),
    settle: (server, fence) => new Promise((answer, fail) => settlements.push({ server: Number(server), fence, answer, fail })),
    stored: () => undefined,
    adopt: (server, fence) => adopted.push({ server: Number(server), fence }),
    notCounted: () => new LockStoreError('it restarted', 'k', { unknown: true }),
    withdraw: (server) => withdrawn.push(Number(server)),
  };
  void new Ballot({ servers, majority: 3 } as unknown as Quorum, 'k', polling).result.then(
    (reply) => {
      granted = reply.fence;
      busy = reply;
    },
    (error: unknown) => (failure = error),
  );
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function vote(server: number, fence: number): Promise<void> {
  votes[server]?.answer({ reply: String(fence), counts: true });
  await turn();
}

async function settled(server: number): Promise<void> {
  settlements.find((asked) => asked.server === server)?.answer(true);
  await turn();
}

test('a server that is sent another fence does not count for the one it had', async () => {
  await vote(3, 400);
  await vote(4, 400);
  await vote(0, 100);
  expect(settlements).toMatchObject([{ server: 0, fence: 400 }]);
  await vote(1, 100);
  await vote(2, 100);
  expect(granted).toBeUndefined();
  await settled(0);
  expect(granted).toBe(400);
  expect(settlements).toHaveLength(1);
  expect(adopted).toEqual([
    { server: 1, fence: 400 },
    { server: 2, fence: 400 },
  ]);
});

test('a fence that others agree on meanwhile is granted, and the servers that were to have another one keep it', async () => {
  await vote(3, 400);
  await vote(0, 100);
  await vote(1, 200);
  expect(settlements).toMatchObject([
    { server: 0, fence: 400 },
    { server: 1, fence: 400 },
  ]);
  await vote(2, 400);
  await vote(4, 400);
  expect(granted).toBe(400);
  await settled(0);
  await settled(1);
  expect(settlements).toHaveLength(2);
});

test('a higher fence that comes while others settle is lowered: they are a majority without it', async () => {
  await vote(0, 100);
  await vote(1, 200);
  await vote(2, 300);
  await vote(3, 500);
  await settled(0);
  expect(granted).toBeUndefined();
  votes[4]?.answer({ reply: [5_000, 'somebody', 10], counts: true });
  await settled(1);
  expect(granted).toBe(300);
  expect(adopted).toEqual([{ server: 3, fence: 300 }]);
});

test('a vote that was taken away before its fence was settled is a refusal, and no failure of the store', async () => {
  const full = new LockStoreError('OOM', 'k', { unknown: false });
  votes[3]?.fail(full);
  votes[4]?.fail(full);
  await vote(0, 100);
  await vote(1, 200);
  await vote(2, 200);
  settlements[0]?.answer(false);
  await turn();
  expect(failure).toBeUndefined();
  expect(busy).toMatchObject({ remainingMs: 0 });
  expect(withdrawn.toSorted()).toEqual([1, 2]);
});

test('a vote is withdrawn also where the connection broke before the server could be sent another fence', async () => {
  await vote(0, 100);
  await vote(1, 200);
  await vote(2, 200);
  const notSent = new LockStoreError('there is no connection', 'k', { unknown: false });
  settlements[0]?.fail(notSent);
  votes[3]?.fail(notSent);
  votes[4]?.fail(notSent);
  await turn();
  expect(failure).toBeInstanceOf(LockStoreError);
  expect(withdrawn.toSorted()).toEqual([0, 1, 2]);
});

const refuse = (server: number): void => votes[server]?.answer({ reply: [5_000, 'somebody', 10, 0, 1], counts: true });

describe('votes that two owners share', () => {
  beforeAll(() => {
    contestMs = 500;
  });
  afterAll(() => {
    contestMs = 60_000;
  });

  test('are withdrawn as busy where the fifth server is slow: neither owner waits for it until its time limit', async () => {
    await vote(0, 100);
    await vote(1, 100);
    refuse(2);
    refuse(3);
    await turn();
    expect(busy).toBeUndefined();
    await until('the contest is over', () => busy !== undefined);
    expect(busy).toMatchObject({ holder: { by: 'somebody' } });
    expect(withdrawn).toEqual([0, 1]);
    await vote(4, 100);
    expect(withdrawn).toEqual([0, 1, 4]);
  });

  test('wait for as many servers as make a majority, however slow these are', async () => {
    await vote(0, 100);
    refuse(1);
    await sleep(2 * contestMs);
    expect([granted, busy, failure]).toEqual([undefined, undefined, undefined]);
    refuse(2);
    await turn();
    expect(busy).toMatchObject({ holder: { by: 'somebody' } });
  });
});

test('a vote counts however late it comes, where no other owner has one', async () => {
  await vote(0, 100);
  await vote(1, 100);
  await sleep(contestMs / 1_000);
  await vote(2, 100);
  expect(granted).toBe(100);
});

// Where a minority is away and each owner is nearer to another server, they went on splitting the votes for many
// seconds.
test('owners that have split the votes ask again after pauses that differ by as long as an attempt takes', () => {
  const refusal = { remainingMs: 5_000, holder: { by: 'somebody', heldMs: 10 }, rank: 0 };
  const pauses = (split: number): number[] =>
    Array.from({ length: 1_000 }, () => busyReply(split, [refusal, refusal], 3, 100).recheckMs as number).toSorted((a, b) => a - b);
  const [split, held] = [pauses(1), pauses(0)];
  expect(split[0]).toBeLessThan(20);
  expect(split.at(-1)).toBeGreaterThan(150);
  expect(held.at(-1)).toBeLessThanOrEqual(10);
});
