import type { Defect } from './defect.js';
import { together } from './together.js';

/** Defects between two features, or of one that the other scenarios do not use. */
const DEFECTS: readonly Omit<Defect, 'scenarios'>[] = [
  {
    defect: 'a transaction that begins in code left behind by another one counts as a part of that',
    finding: /before its transaction has ended/,
    seed: 2,
    edits: [
      [
        'lib/core/transactions/transaction-scope.ts',
        'const outer = unsettled(this.#runs.getStore());',
        'const outer = this.#runs.getStore();',
      ],
    ],
  },
  {
    defect: 'a transaction ends before all that was begun inside it',
    finding: /before its transaction has ended/,
    edits: [['lib/core/transactions/transaction-scope.ts', 'if (--this.#running === 0) {', 'if (--this.#running >= 0) {']],
  },
  {
    defect: 'the ticket of a call that has ended enters the lock of whom its lease serves',
    finding: /Two owners trust/,
    seed: 5,
    edits: [
      ['lib/core/entering/frame.ts', 'if (ended) {', 'if (false) {'],
      ['lib/core/entering/frame.ts', 'hasEnded ? lease.ticketOfNone : lease.makeTicketEntry()', 'lease.makeTicketEntry()'],
    ],
  },
  {
    defect: 'a lease serves although the store granted less than its ttl',
    finding: /for longer than the store/,
    seed: 7,
    edits: [['lib/core/leases/lease.ts', 'this.term.grantedMs >= this.#ttlMs &&', '']],
  },
  {
    defect: 'a lease serves a call with a fixed lease',
    finding: /has a fixed lease/,
    edits: [['lib/core/leases/lease.ts', 'next.#renews &&', '']],
  },
  {
    defect: 'a loss in a transaction aborts the signals of all its calls',
    finding: /has lost nothing/,
    edits: [['lib/core/transactions/transaction.ts', "if (lease?.loss === loss || lease?.state === 'overdue') {", 'if (true) {']],
  },
  {
    defect: 'a call after a transaction belongs to it',
    finding: /lost without a loss/,
    seed: 2,
    edits: [['lib/core/transactions/transactions.ts', 'transaction.hasEnded ? undefined : transaction', 'transaction']],
  },
  {
    defect: 'a refused guest is not forgotten',
    finding: /without a pause/,
    seed: 3,
    edits: [['lib/core/entering/guests.ts', 'joined.catch(() => this.#refused(ticket, lease))', 'joined.catch(() => undefined)']],
  },
  {
    defect: 'a transaction keeps no locks',
    finding: /before its transaction has ended/,
    edits: [['lib/core/entering/frame.ts', 'this.transaction?.keep(this.#taken);', '']],
  },
  {
    defect: 'a transaction keeps its locks from nobody inside them',
    finding: /which a transaction keeps/,
    seed: 1,
    edits: [['lib/core/calls/call-stack.ts', 'return this.#keeping((transaction) => !call.isWithin(transaction));', 'return false;']],
  },
  {
    defect: 'work outside of locks is inside of them',
    finding: /which is another call's/,
    edits: [['lib/core/calls/call-tree.ts', 'return callContext.run(undefined, fn);', 'return fn();']],
  },
  {
    defect: 'a call that is to acquire anew enters the lock around it',
    finding: /which is another call's/,
    edits: [
      ['lib/core/entering/entrance.ts', "call.reentry === 'context' && frame.parent ?", 'frame.parent ?'],
      [
        'lib/core/entering/key-by-key.ts',
        "call.reentry === 'context' ? enclosingLock(this.#parts.leases, key, frame, call.shares) : undefined",
        'enclosingLock(this.#parts.leases, key, frame, call.shares)',
      ],
    ],
  },
  {
    defect: 'a generator goes on outside of its lock',
    finding: /again inside/,
    edits: [
      ['lib/nest/methods/locked-generator.ts', 'lock.isHeld() ? lock.run(() => inner.next(value))', 'lock.isHeld() ? inner.next(value)'],
    ],
  },
  {
    defect: 'the lock of an Observable is kept when nobody subscribes any more',
    finding: /has ended, and left|never ended|timers/,
    edits: [
      [
        'lib/nest/methods/locked-observable.ts',
        `      unsubscribed.abort();
      stop.next();`,
        '      unsubscribed.abort();',
      ],
    ],
  },
  {
    defect: 'a leader that was asked to stop has lost its lock',
    finding: /without a cause/,
    edits: [['lib/leader/leadership.ts', 'this.#frame?.notify(revoked(this.#parts.key, reason));', 'this.#frame?.lose(reason);']],
  },
  {
    defect: 'a call that begins while the application closes takes its lock',
    finding: /has shut down, and left/,
    edits: [
      ['lib/core/entering/entrance.ts', 'lifecycle.isClosing || ', ''],
      ['lib/core/entering/entrance.ts', ' && !acquisition.gaveUp(lifecycle.isClosing)', ''],
    ],
  },
  {
    defect: 'a shutdown releases nothing',
    finding: /has shut down, and left/,
    edits: [
      ['lib/core/leases/leases.ts', 'const ended = this.running.map((lease) => this.#interrupt(lease));', 'const ended: unknown[] = [];'],
    ],
  },
  {
    defect: 'a forced release of a lease that serves is not heard',
    finding: /though its lease is over/,
    seed: 5,
    edits: [['lib/core/leases/leases.ts', 'lease.storedFence === fence', 'lease.fence === fence']],
  },
];

export const DEFECTS_OF_FEATURES: readonly Defect[] = DEFECTS.map((defect) => ({ ...defect, scenarios: together }));
