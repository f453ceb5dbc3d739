import type { Defect } from './defect.js';
import { together } from './together.js';

/** Defects between two features, or of one that the other scenarios do not use. */
const DEFECTS: readonly Omit<Defect, 'scenarios'>[] = [
  {
    defect: 'a transaction that begins in code left behind by another one counts as a part of that',
    finding: /before its transaction has ended/,
    seed: 2,
    edits: [
      {
        file: 'lib/core/transactions/transaction-scope.ts',
        from: 'const outer = unsettled(this.#runs.getStore());',
        to: 'const outer = this.#runs.getStore();',
      },
    ],
  },
  {
    defect: 'a transaction ends before all that was begun inside it',
    finding: /before its transaction has ended/,
    edits: [
      { file: 'lib/core/transactions/transaction-scope.ts', from: 'if (--this.#running === 0) {', to: 'if (--this.#running >= 0) {' },
    ],
  },
  {
    defect: 'the ticket of a call that has ended enters the lock of whom its lease serves',
    finding: /Two owners trust/,
    seed: 5,
    edits: [
      { file: 'lib/core/entering/frame.ts', from: 'if (ended) {', to: 'if (false) {' },
      {
        file: 'lib/core/entering/frame.ts',
        from: 'hasEnded ? lease.ticketOfNone : lease.makeTicketEntry()',
        to: 'lease.makeTicketEntry()',
      },
    ],
  },
  {
    defect: 'a lease serves although the store granted less than its ttl',
    finding: /for longer than the store/,
    seed: 7,
    edits: [{ file: 'lib/core/leases/lease.ts', from: 'this.term.grantedMs >= this.#ttlMs &&', to: '' }],
  },
  {
    defect: 'a lease serves a call with a fixed lease',
    finding: /has a fixed lease/,
    edits: [{ file: 'lib/core/leases/lease.ts', from: 'next.#renews &&', to: '' }],
  },
  {
    defect: 'a loss in a transaction aborts the signals of all its calls',
    finding: /has lost nothing/,
    edits: [
      {
        file: 'lib/core/transactions/transaction.ts',
        from: "if (lease?.loss === loss || lease?.state === 'overdue') {",
        to: 'if (true) {',
      },
    ],
  },
  {
    defect: 'a call after a transaction belongs to it',
    finding: /lost without a loss/,
    seed: 2,
    edits: [{ file: 'lib/core/transactions/transactions.ts', from: 'transaction.hasEnded ? undefined : transaction', to: 'transaction' }],
  },
  {
    defect: 'a refused guest is not forgotten',
    finding: /without a pause/,
    seed: 3,
    edits: [
      {
        file: 'lib/core/entering/guests.ts',
        from: 'joined.catch(() => this.#refused(ticket, lease))',
        to: 'joined.catch(() => undefined)',
      },
    ],
  },
  {
    defect: 'a transaction keeps no locks',
    finding: /before its transaction has ended/,
    edits: [{ file: 'lib/core/entering/frame.ts', from: 'this.transaction?.keep(this.#taken);', to: '' }],
  },
  {
    defect: 'a transaction keeps its locks from nobody inside them',
    finding: /which a transaction keeps/,
    seed: 1,
    edits: [
      {
        file: 'lib/core/calls/call-stack.ts',
        from: 'return this.#keeping((transaction) => !call.isWithin(transaction));',
        to: 'return false;',
      },
    ],
  },
  {
    defect: 'work outside of locks is inside of them',
    finding: /which is another call's/,
    edits: [{ file: 'lib/core/calls/call-tree.ts', from: 'return callContext.run(undefined, fn);', to: 'return fn();' }],
  },
  {
    defect: 'a call that is to acquire anew enters the lock around it',
    finding: /which is another call's/,
    edits: [
      {
        file: 'lib/core/entering/entrance.ts',
        from: "call.reentry === 'context' && frame.parent ?",
        to: 'frame.parent ?',
      },
      {
        file: 'lib/core/entering/key-by-key.ts',
        from: "call.reentry === 'context' ? enclosingLock(this.#parts.leases, key, frame, call.shares) : undefined",
        to: 'enclosingLock(this.#parts.leases, key, frame, call.shares)',
      },
    ],
  },
  {
    defect: 'a generator goes on outside of its lock',
    finding: /again inside/,
    edits: [
      {
        file: 'lib/nest/methods/locked-generator.ts',
        from: 'lock.isHeld() ? lock.run(() => inner.next(value))',
        to: 'lock.isHeld() ? inner.next(value)',
      },
    ],
  },
  {
    defect: 'the lock of an Observable is kept when nobody subscribes any more',
    finding: /has ended, and left|never ended|timers/,
    edits: [
      {
        file: 'lib/nest/methods/locked-observable.ts',
        from: `      unsubscribed.abort();
      stop.next();`,
        to: '      unsubscribed.abort();',
      },
    ],
  },
  {
    defect: 'a leader that was asked to stop has lost its lock',
    finding: /without a cause/,
    edits: [
      {
        file: 'lib/leader/leadership.ts',
        from: 'this.#frame?.notify(revoked(this.#parts.key, reason));',
        to: 'this.#frame?.lose(reason);',
      },
    ],
  },
  {
    defect: 'a call that begins while the application closes takes its lock',
    finding: /has shut down, and left/,
    edits: [
      { file: 'lib/core/entering/entrance.ts', from: 'lifecycle.isClosing || ', to: '' },
      { file: 'lib/core/entering/entrance.ts', from: ' && !acquisition.gaveUp(lifecycle.isClosing)', to: '' },
    ],
  },
  {
    defect: 'a shutdown releases nothing',
    finding: /has shut down, and left/,
    edits: [
      {
        file: 'lib/core/leases/leases.ts',
        from: 'const ended = this.running.map((lease) => this.#interrupt(lease));',
        to: 'const ended: unknown[] = [];',
      },
    ],
  },
  {
    defect: 'a forced release of a lease that serves is not heard',
    finding: /though its lease is over/,
    seed: 5,
    edits: [{ file: 'lib/core/leases/leases.ts', from: 'lease.storedFence === fence', to: 'lease.fence === fence' }],
  },
];

export const DEFECTS_OF_FEATURES: readonly Defect[] = DEFECTS.map((defect) => ({ ...defect, scenarios: together }));
