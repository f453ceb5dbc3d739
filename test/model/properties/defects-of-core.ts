import { callsOf } from './calls.js';
import { crowds, relays } from './crowds.js';
import type { Defect } from './defect.js';

/** Defects of core. */
export const DEFECTS_OF_CORE: readonly Defect[] = [
  {
    defect: 'the deadline of a grant is counted from the reply',
    finding: /for longer than the store has granted/,
    edits: [
      {
        file: 'lib/core/leases/attempt.ts',
        from: `fence: reply.fence, sent }`,
        to: `fence: reply.fence, sent: momentOf(clock) }`,
      },
    ],
  },
  {
    defect: 'the deadline of a grant that came by an exchange is counted from the reply',
    finding: /for longer than the store has granted/,
    scenarios: relays,
    edits: [
      {
        file: 'lib/core/leases/attempt.ts',
        from: 'judge(answered, sent, store, lease, clock)',
        to: 'judge(answered, momentOf(clock), store, lease, clock)',
      },
    ],
  },
  {
    defect: 'an attempt of unknown outcome counts as answered',
    finding: /which was released before/,
    edits: [{ file: 'lib/core/leases/attempt.ts', from: '!error.unknown : error', to: 'true : error' }],
  },
  {
    defect: 'the deadline of a renewal is counted from the reply',
    finding: /for longer than the store has granted/,
    seed: 2,
    edits: [
      {
        file: 'lib/core/leases/renewer.ts',
        from: 'records[index] as HoldRecord, sent)',
        to: 'records[index] as HoldRecord, momentOf(this.#clock))',
      },
    ],
  },
  {
    defect: 'the wall clock decides about leases',
    finding: /though its lease is over|without a cause/,
    edits: [
      {
        file: 'lib/core/leases/lease.ts',
        from: 'this.remainingMs > 0',
        to: 'this.#clock.wall() < this.term.deadline',
      },
      {
        file: 'lib/core/leases/lease-term.ts',
        from: 'this.#clock.monotonic() >= this.#deadline',
        to: 'this.#clock.wall() >= this.#deadline',
      },
    ],
  },
  {
    defect: 'clocks may not run at different speeds',
    finding: /for longer than the store has granted/,
    edits: [
      {
        file: 'lib/core/seam/time.ts',
        from: 'sentAt + ttlMs * 0.99 - 2',
        to: 'sentAt + ttlMs',
      },
    ],
  },
  {
    defect: 'a grant that comes after its own deadline counts',
    finding: /lost without a loss/,
    edits: [
      {
        file: 'lib/core/leases/attempt.ts',
        from: 'return store.expires && ',
        to: 'return false && ',
      },
    ],
  },
  {
    defect: 'an attempt of unknown outcome is not given back',
    finding: /has ended, and left/,
    edits: [
      {
        file: 'lib/core/entering/contender.ts',
        from: 'if (isUnknown) {',
        to: 'if (false) {',
      },
    ],
  },
  {
    defect: 'a grant for a call that was aborted is not given back',
    finding: /has ended, and left/,
    edits: [
      {
        file: 'lib/core/entering/contender.ts',
        from: 'if (lease.leave()) {',
        to: 'if (false) {',
      },
    ],
  },
  {
    defect: 'an aborted call waits on',
    finding: /was aborted, and goes on/,
    edits: [
      {
        file: 'lib/locks.ts',
        from: 'signal ? new AbortableEntry(acquisition, signal, listener) : listener',
        to: 'listener',
      },
    ],
  },
  {
    defect: 'a call goes straight past those who wait for its key',
    finding: /free for .* though a live process waited/,
    edits: [{ file: 'lib/core/entering/entrance.ts', from: '!lines.mayGoStraight(key, call) || ', to: '' }],
  },
  {
    defect: 'a re-entry goes straight past a sibling that is inside',
    finding: /runs beside/,
    edits: [{ file: 'lib/core/entering/entrance.ts', from: 'if (!lease.calls.admits(frame)) {', to: 'if (false) {' }],
  },
  {
    defect: 'a call that was aborted while it asked for its key goes straight in',
    finding: /has ended, and left/,
    edits: [
      { file: 'lib/core/entering/entrance.ts', from: ' && !acquisition.gaveUp(lifecycle.isClosing)', to: '' },
      {
        file: 'lib/core/entering/entrance.ts',
        from: 'if (refusal) {\n      this.#refuse(refusal,',
        to: 'if (false) {\n      this.#refuse(refusal,',
      },
    ],
  },
  {
    defect: 'a lock that was lost between its grant and the body is not looked at',
    scenarios: callsOf(true),
    finding: /runs without its lease/,
    edits: [
      {
        file: 'lib/core/entering/frame.ts',
        from: 'const why = this.#endedBy() ?? this.#doubt;',
        to: 'const why = undefined as Error | undefined;',
      },
    ],
  },
  {
    defect: 'an attempt that was not granted is forgotten, and another one sent',
    finding: /cannot be had at the end/,
    edits: [
      {
        file: 'lib/core/entering/entrance.ts',
        from: 'this.#keyByKey.enter(acquisition, { lease, line })',
        to: 'this.#keyByKey.enter(acquisition)',
      },
    ],
  },
  {
    defect: 'leases are not renewed',
    finding: /without a cause/,
    edits: [
      {
        file: 'lib/core/leases/lease.ts',
        from: 'this.#renews && expires, this.#acquiredAt',
        to: 'false, this.#acquiredAt',
      },
    ],
  },
  {
    defect: 'a renewal without an answer counts as a loss',
    finding: /without a cause/,
    edits: [
      {
        file: 'lib/core/leases/lease.ts',
        from: 'held === false && !this.hasEnded',
        to: '!held && !this.hasEnded',
      },
    ],
  },
  {
    defect: 'a renewal that says that the lock is gone is not heard',
    finding: /though its lease is over/,
    edits: [
      {
        file: 'lib/core/leases/lease.ts',
        from: 'held === false && !this.hasEnded',
        to: 'false',
      },
    ],
  },
  {
    defect: 'nobody watches the deadline',
    finding: /was not told/,
    edits: [
      {
        file: 'lib/core/leases/lease-term.ts',
        from: 'Math.min(this.#deadline, this.#maxHoldAt)',
        to: 'this.#maxHoldAt',
      },
    ],
  },
  {
    defect: 'the code is not told of a loss',
    finding: /was not told/,
    edits: [
      {
        file: 'lib/core/leases/leases.ts',
        from: 'lease.calls.notify(loss);',
        to: '',
      },
    ],
  },
  {
    defect: 'a loss is told each time that it is seen',
    finding: /told twice/,
    edits: [
      {
        file: 'lib/core/leases/leases.ts',
        from: `    if (lease.hasEnded) {
      return lease.loss;
    }
    const { lines, releases }`,
        to: '    const { lines, releases }',
      },
      {
        file: 'lib/core/leases/leases.ts',
        from: `    this.#forget(lease);
    lease.lose(loss);`,
        to: '    lease.lose(loss);',
      },
    ],
  },
  {
    defect: 'the next caller in the process waits for the body of a lost lock',
    finding: /gave up, though|cannot be had/,
    edits: [
      {
        file: 'lib/core/leases/leases.ts',
        from: `      lines.endTurn(line);
    }
    return loss;`,
        to: `    }
    return loss;`,
      },
    ],
  },
  {
    defect: 'nobody looks again at a lock that was busy',
    finding: /was free for/,
    edits: [
      {
        file: 'lib/core/entering/contender.ts',
        from: 'return now + Math.min(pauseMs, busy ? busy.remainingMs + 1 : pauseMs);',
        to: 'return Infinity;',
      },
    ],
  },
  {
    defect: 'a call enters the lock of an enclosing call without a look at its lease',
    finding: /runs without its lease/,
    edits: [
      {
        file: 'lib/core/entering/enclosing-locks.ts',
        from: 'call.assertHeld();',
        to: '',
      },
    ],
  },
  {
    defect: 'a call re-enters the lock of a call that has left',
    finding: /lost without a loss/,
    seed: 19,
    edits: [
      {
        file: 'lib/core/calls/call-tree.ts',
        from: 'while (at?.hasLeft) {',
        to: 'while (false) {',
      },
    ],
  },
  {
    defect: 'children that were started in parallel run together',
    finding: /runs beside/,
    edits: [
      {
        file: 'lib/core/calls/call-stack.ts',
        from: 'return (this.#isParallel || top === undefined || call.isInside(top)) && !this.#isKeptFrom(call);',
        to: 'return true;',
      },
    ],
  },
  {
    defect: 'the first call to leave releases the lock, though others are inside',
    finding: /though its lease is over|runs without its lease|without a loss|returned, though|was not told/,
    edits: [
      {
        file: 'lib/core/leases/leases.ts',
        from: ' || !lease.calls.isEmpty) {',
        to: ') {',
      },
    ],
  },
  {
    defect: 'a lock that is lost while the next is waited for is not taken anew',
    finding: /lost without a loss/,
    edits: [
      {
        file: 'lib/core/entering/key-by-key.ts',
        from: 'const lost = at > 0 ?',
        to: 'const lost = false ?',
      },
    ],
  },
  {
    defect: 'a lease is renewed only just before it ends',
    finding: /Two owners trust/,
    seed: 25,
    edits: [{ file: 'lib/core/leases/lease-term.ts', from: '(this.#grantedMs / 3)', to: '(this.#grantedMs / 12)' }],
  },
  {
    defect: 'a call waits longer than it was asked to',
    finding: /waited for/,
    edits: [
      {
        file: 'lib/core/entering/acquisition.ts',
        from: 'this.started.monotonic + call.waitMs',
        to: 'this.started.monotonic + 2 * call.waitMs',
      },
    ],
  },
  {
    defect: 'nobody catches a command that fails in the background',
    finding: /unhandled/i,
    edits: [{ file: 'lib/core/leases/background-releases.ts', from: '.catch(() => undefined)', to: '' }],
  },
  {
    defect: 'a renewal that is on its way when maxHold is over renews for ever',
    finding: /though the maxHold of/,
    seed: 27,
    edits: [{ file: 'lib/core/leases/lease-term.ts', from: 'if (this.#renewAt < Infinity) {', to: 'if (true) {' }],
  },
  {
    defect: 'a turn that comes before a busy reply is dropped',
    finding: /was free for/,
    scenarios: crowds,
    edits: [{ file: 'lib/core/leases/line.ts', from: 'this.#isNotified = true;', to: '' }],
  },
  {
    defect: 'one process may have the lock as often as it likes',
    finding: /unfair/,
    scenarios: crowds,
    edits: [
      { file: 'lib/core/leases/line.ts', from: 'this.#burst < MOST_FENCES', to: 'true' },
      { file: 'lib/core/leases/lines.ts', from: 'this.keepQueues ? BURST_MS : SLICE_MS', to: 'Infinity' },
    ],
  },
  {
    defect: 'the places of calls that gave up are kept',
    finding: /out of order|was free for/,
    scenarios: crowds,
    edits: [
      { file: 'lib/core/leases/lines.ts', from: 'this.#releases.leave(line.key, line.place);', to: '' },
      { file: 'lib/core/leases/lines.ts', from: 'this.#releases.leave(key, { name });', to: '' },
    ],
  },
  {
    defect: 'core waits for ever for a store that does not answer',
    finding: /was free for|was not told|never ended/,
    edits: [{ file: 'lib/core/seam/time-limits.ts', from: 'if (now >= pending.endsAt) {', to: 'if (false) {' }],
  },
  {
    defect: 'a lease serves the next call though a ticket to it was made',
    finding: /Two owners trust/,
    scenarios: relays,
    edits: [{ file: 'lib/core/leases/hold.ts', from: '!this.#hasTicket &&', to: '' }],
  },
  {
    defect: 'a lease serves more calls than its block has fences',
    finding: /which the store did not grant/,
    scenarios: relays,
    edits: [{ file: 'lib/core/leases/hold.ts', from: 'this.#fence + 1 < this.#storedFence + this.#fences', to: 'true' }],
  },
  {
    defect: 'a lease serves the next call with the fence of the one before',
    finding: /which is another call's/,
    scenarios: relays,
    edits: [
      {
        file: 'lib/core/leases/hold.ts',
        from: 'this.#fence = before.#fence + (this.shares === undefined ? 1 : 0);',
        to: 'this.#fence = before.#fence;',
      },
    ],
  },
  {
    defect: 'the answer to a renewal is not passed on to the call that is served meanwhile',
    finding: /timers|though its lease is over|was not told|without a cause/,
    scenarios: relays,
    edits: [{ file: 'lib/core/leases/lease.ts', from: 'successor.renewalAnswered(held, record, sent);', to: 'this;' }],
  },
];
