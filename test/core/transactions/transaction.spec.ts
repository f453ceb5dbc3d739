import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { callerOf } from '../../../lib/core/words/caller';
import { Lease } from '../../../lib/core/leases/lease';
import { LockLostError } from '../../../lib/core/words/errors';
import { Owner } from '../../../lib/core/leases/hold';
import { Transaction } from '../../../lib/core/transactions/transaction';
import { TransactionScope } from '../../../lib/core/transactions/transaction-scope';
import { Waiter } from '../../../lib/core/calls/waiter';

const clock = { monotonic: () => 1_000, wall: () => 1e12 };
const caller = callerOf('tester', 'tester', 'tester');

const leaseOn = (key: string): Lease => new Lease(clock, key, Owner.next(), { caller, ttlMs: 1_000, renew: true, shares: undefined });

function lose(lease: Lease): LockLostError {
  const loss = new LockLostError(`Lock "${lease.key}" was lost.`, lease.key, 'forced');
  lease.lose(loss);
  lease.calls.notify(loss);
  return loss;
}

let transaction: Transaction;

beforeEach(() => {
  transaction = new Transaction({});
});

test('a transaction knows the first loss of what it keeps, whichever lease is lost, also the second on a key', () => {
  const [first, second, third] = [leaseOn('a'), leaseOn('k'), leaseOn('k')];
  transaction.keep([first, second, third]);
  expect(transaction.loss).toBeUndefined();
  const loss = lose(third);
  expect(transaction.loss).toBe(loss);
  lose(first);
  expect(transaction.loss).toBe(loss);
});

test('a transaction is not lost where a call is notified of a maxHold that is over', () => {
  const lease = leaseOn('k');
  transaction.keep([leaseOn('a'), lease]);
  lease.calls.notify(new LockLostError('Its maxHold is over.', 'k', 'maxHold'));
  expect(transaction.loss).toBeUndefined();
});

test('a call that gave up beside the one that acquires is not admitted', async () => {
  const frame = { keys: ['k'], leaseOn: () => undefined, notify: () => undefined };
  expect(transaction.lineFor('k')).toBeUndefined();
  transaction.enters('k', frame);
  const line = transaction.lineFor('k');
  const [gaveUp, waits] = [0, 1].map(() => new Waiter(60_000, undefined, () => undefined)) as [Waiter, Waiter];
  line?.add(gaveUp);
  line?.add(waits);
  line?.delete(gaveUp);
  transaction.hasEntered(frame);
  gaveUp.end('busy');
  expect([await waits.outcome, await gaveUp.outcome]).toEqual(['admitted', 'busy']);
  expect(transaction.lineFor('k')).toBeUndefined();
});

describe('a TransactionScope that is given no function', () => {
  const scope = new TransactionScope();

  test('to run says which, and what to pass', async () => {
    await expect(scope.run(Promise.resolve() as never)).rejects.toMatchObject({
      code: 'LOCK_CONFIGURATION',
      message: expect.stringMatching(/^TransactionScope\.run: .*scope\.run\(\(\) => /) as string,
    });
  });

  test('to follow says which, and what to pass', () => {
    expect(() => scope.around(undefined as never)).toThrow(
      expect.objectContaining({
        code: 'LOCK_CONFIGURATION',
        message: expect.stringMatching(/^TransactionScope\.around: .*client\.transaction/) as string,
      }),
    );
  });
});

test('runs of one transaction, each begun inside the one before, which ends a moment later, do not grow in memory', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const scope = new TransactionScope();
  const heap: number[] = [];
  await new Promise<void>((done) => {
    const step = (runs: number): unknown =>
      scope.run(async () => {
        if (runs % 20_000 === 0) {
          // Those before have ended.
          await turn();
          await turn();
          collect();
          heap.push(process.memoryUsage().heapUsed);
        }
        if (runs === 60_000) {
          done();
          return;
        }
        setImmediate(() => step(runs + 1));
        await turn();
      });
    step(1);
  });
  // Not even 25 bytes of each.
  expect((heap[2] as number) - (heap[0] as number)).toBeLessThan(1_000_000);
});
