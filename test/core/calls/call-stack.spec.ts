import { callContext, CallNode, type Keeper } from '../../../lib/core/calls/call-tree';
import { CallStack } from '../../../lib/core/calls/call-stack';
import { LockLostError } from '../../../lib/core/words/errors';
import { Waiter } from '../../../lib/core/calls/waiter';

const LOSS = new LockLostError('Lock "k" was lost.', 'k', 'expired');

class Call extends CallNode {
  readonly hasLeft = false;
  readonly lock = undefined;
  readonly notifiedOf: LockLostError[] = [];

  notify(loss: LockLostError): void {
    this.notifiedOf.push(loss);
  }
}

class Transaction implements Keeper {
  readonly identity = {};
  readonly kept = new Set<never>();
  readonly notifiedOf: LockLostError[] = [];

  notify(loss: LockLostError): void {
    this.notifiedOf.push(loss);
  }
}

const callIn = (parent?: CallNode, transaction?: Keeper): Call => callContext.run(parent, () => new Call(['k'], false, transaction));

let stack: CallStack;
let outer: Call;
let transaction: Transaction;

/** A call that waits to enter. */
function waits(call: CallNode): Waiter {
  const line = stack.lineFor(call);
  const waiter = new Waiter(60_000, undefined, (ended) => line.delete(ended));
  line.add(waiter);
  return waiter;
}

beforeEach(() => {
  stack = new CallStack();
  outer = callIn();
  transaction = new Transaction();
});

describe('a call', () => {
  test('belongs to the transaction that a call around it was made inside of', () => {
    const parent = callIn(callIn(undefined, transaction));
    expect([parent.isWithin(transaction), callIn(parent).isWithin(transaction)]).toEqual([true, true]);
    expect([callIn(parent).isWithin(new Transaction()), callIn().isWithin(transaction)]).toEqual([false, false]);
  });
});

describe('the calls inside a lease', () => {
  test('are left by those only that are inside, and by a transaction once', () => {
    expect(stack.remove(outer)).toBe(false);
    expect(stack.remove(transaction)).toBe(false);
    stack.push(outer);
    stack.keepFor(transaction);
    expect(stack.remove(callIn())).toBe(false);
    expect([stack.remove(outer), stack.remove(outer)]).toEqual([true, false]);
    expect([stack.remove(transaction), stack.remove(transaction)]).toEqual([true, false]);
    expect(stack.isEmpty).toBe(true);
  });

  test('have all ended, and a transaction keeps the lease: only then it is only kept', () => {
    expect(stack.isOnlyKept).toBe(false);
    stack.push(outer);
    expect(stack.isOnlyKept).toBe(false);
    stack.keepFor(transaction);
    expect(stack.isOnlyKept).toBe(false);
    stack.remove(outer);
    expect([stack.isOnlyKept, stack.isEmpty]).toEqual([true, false]);
    stack.remove(transaction);
    expect([stack.isOnlyKept, stack.isEmpty]).toEqual([false, true]);
  });

  test('are notified of a loss, and so is each that enters later; before it, nobody is', () => {
    const late = callIn(outer);
    stack.push(outer);
    stack.keepFor(transaction);
    expect(outer.notifiedOf).toEqual([]);
    stack.notify(LOSS);
    stack.push(late);
    expect([outer.notifiedOf, late.notifiedOf, transaction.notifiedOf]).toEqual([[LOSS], [LOSS], [LOSS]]);
  });
});

describe('calls that wait to enter', () => {
  test('enter one at a time, the first that may', async () => {
    const [stranger, first, second] = [callIn(), callIn(outer), callIn(outer)];
    stack.push(outer);
    const [strange, one, two] = [stranger, first, second].map(waits) as [Waiter, Waiter, Waiter];
    expect(stack.admitNext()).toBe(true);
    expect(await one.outcome).toBe('admitted');
    expect([stack.top, stack.waiting]).toEqual([first, 2]);
    expect([stranger, first, second].map((call) => stack.hasWaiting(call))).toEqual([true, false, true]);
    // The second would run beside the first.
    expect(stack.admitNext()).toBe(false);
    stack.remove(first);
    expect(stack.admitNext()).toBe(true);
    expect(await two.outcome).toBe('admitted');
    stack.remove(second);
    expect([stack.admitNext(), stack.top, stack.waiting]).toEqual([false, outer, 1]);
    strange.end('shutdown');
    expect(stack.admitNext()).toBe(false);
  });

  test('are all refused where the lease is lost', async () => {
    stack.refuse(LOSS);
    stack.push(outer);
    const waiting = [callIn(outer), callIn(outer)].map(waits);
    stack.refuse(LOSS);
    expect(await Promise.allSettled(waiting.map(({ outcome }) => outcome))).toEqual([
      { status: 'rejected', reason: LOSS },
      { status: 'rejected', reason: LOSS },
    ]);
    expect(stack.waiting).toBe(0);
  });
});
