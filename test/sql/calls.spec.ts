import { jest } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import { Calls } from '../../lib/sql/calls';
import type { Answered, Dialect, PooledConnection, Sql } from '../../lib/sql/dialect';
import { LATE, type Operation } from '../../lib/sql/operation';
import { playTime } from '../support/virtual-time';

playTime({ passes: false });

const CONFLICT = new Error('conflict');
const REFUSAL = new Error('refused');
const UNFIT = new Error('in a transaction');
const LIMIT_MS = 500;

/** A statement that is on its way, which the test answers. */
interface Sent {
  readonly sql: string;
  readonly answered: Answered;
}

const connection: PooledConnection = { on: () => undefined, removeListener: () => undefined };

const batch: Operation = { name: 'batch', parameters: { key: 'text' }, read: (answer) => answer };
const ACQUIRE: Operation<{ readonly key: 'text'; readonly latest: 'bigint' }> = {
  name: 'acquire',
  parameters: { key: 'text', latest: 'bigint' },
  read: (answer) => answer,
};
const RELEASE: Operation<{ readonly key: 'text' }> = { name: 'release', parameters: { key: 'text' }, read: (answer) => answer, batch };

let sent: Sent[];
/** When statements were cancelled. */
let cancelledAt: number[];
/** How connections were given back. */
let released: unknown[];
let cancel: Dialect['cancel'];
let calls: Calls;

beforeEach(() => {
  [sent, cancelledAt, released] = [[], [], []];
  cancel = () => void cancelledAt.push(performance.now());
  const dialect: Partial<Dialect> = {
    name: 'The database',
    connect: (connected) => connected(undefined, connection),
    send: (_connection, { sql }: Sql, answered) => void sent.push({ sql, answered }),
    release: (_connection, end) => void released.push(end),
    cancel: (...asked) => cancel(...asked),
    isInTransaction: (error) => error === UNFIT,
    mayStay: (error) => error !== UNFIT,
    isRefusal: (error) => [CONFLICT, REFUSAL, UNFIT].includes(error),
    isConflict: (error) => error === CONFLICT,
    cureOf: () => undefined,
    nextStep: () => '.',
    callOf: ({ name }) => name,
    answerIn: (answer) => ({ answer, serverMs: 1_700_000_000_000 }),
  };
  calls = new Calls(dialect as Dialect, undefined, [RELEASE]);
});

afterEach(() => {
  jest.restoreAllMocks();
});

/** How a call has ended so far. */
function watched(call: Promise<unknown>): { end: unknown } {
  const seen: { end: unknown } = { end: 'pending' };
  call.then(
    (answer) => (seen.end = answer),
    (error: unknown) => (seen.end = error),
  );
  return seen;
}

async function passes(ms: number): Promise<void> {
  await jest.advanceTimersByTimeAsync(ms);
  await turn();
  await turn();
}

function fails(): never {
  throw new Error('no socket');
}

const NO_REPLY = { code: 'LOCK_STORE', unknown: true };

test('an operation that was refused as too late is sent once more, and waits no longer for that than its call has left', async () => {
  const call = watched(calls.grant(ACQUIRE, { key: 'k' }, { key: 'k', limitMs: LIMIT_MS }));
  await passes(LIMIT_MS - 100);
  sent[0]?.answered(undefined, LATE);
  await passes(98);
  expect(sent).toHaveLength(2);
  expect(call.end).toBe('pending');
  await passes(2);
  expect(call.end).toMatchObject(NO_REPLY);
});

test('calls whose batch was refused are sent by themselves, and wait no longer for that than they have left', async () => {
  const ends = ['a', 'b'].map((key) => watched(calls.call(RELEASE, { key }, { key, limitMs: LIMIT_MS })));
  await passes(LIMIT_MS - 100);
  sent[0]?.answered(REFUSAL);
  await passes(98);
  expect(sent.map(({ sql }) => sql)).toEqual(['batch', 'release', 'release']);
  expect(ends).toEqual([{ end: 'pending' }, { end: 'pending' }]);
  await passes(2);
  expect(ends).toMatchObject([{ end: NO_REPLY }, { end: NO_REPLY }]);
});

test('a statement that was refused because of another one is not sent again after the time of its call', async () => {
  const call = watched(calls.call(ACQUIRE, { key: 'k', latest: 0 }, { key: 'k', limitMs: LIMIT_MS }));
  await passes(10);
  sent[0]?.answered(CONFLICT);
  await passes(10);
  expect(sent).toHaveLength(2);
  // The process stood still: the answer is read before the timer of the call runs.
  const now = performance.now();
  jest.spyOn(performance, 'now').mockReturnValue(now + LIMIT_MS);
  sent[1]?.answered(CONFLICT);
  await passes(10);
  expect(sent).toHaveLength(2);
  expect(call.end).toMatchObject({ code: 'LOCK_STORE', unknown: false });
});

test('a statement whose caller has given up is cancelled when it has taken a second in all', async () => {
  const sentAt = performance.now();
  const call = watched(calls.call(ACQUIRE, { key: 'k', latest: 0 }, { key: 'k', limitMs: LIMIT_MS }));
  await passes(LIMIT_MS);
  expect(call.end).toMatchObject(NO_REPLY);
  await passes(2_000);
  expect(cancelledAt.map((at) => at - sentAt)).toEqual([1_000]);
});

test.each([
  ['throws', (): never => fails()],
  ['rejects', async (): Promise<never> => fails()],
])('a driver that %s where a statement is to be cancelled fails nothing else, and the connection ends a second later', async (_, fail) => {
  cancel = fail;
  const call = watched(calls.call(ACQUIRE, { key: 'k', latest: 0 }, { key: 'k', limitMs: LIMIT_MS }));
  await passes(1_500);
  expect(call.end).toMatchObject(NO_REPLY);
  expect(released).toEqual([]);
  await passes(1_500);
  expect(released).toEqual([true]);
});

test('a statement whose caller has given up is not sent again on another connection, and its own ends where that is in a transaction', async () => {
  const call = watched(calls.call(ACQUIRE, { key: 'k', latest: 0 }, { key: 'k', limitMs: LIMIT_MS }));
  await passes(LIMIT_MS);
  expect(call.end).toMatchObject(NO_REPLY);
  sent[0]?.answered(UNFIT);
  await passes(5_000);
  expect(sent).toHaveLength(1);
  expect(released).toEqual([UNFIT]);
  expect(cancelledAt).toEqual([]);
});
