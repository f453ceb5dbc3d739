import { callsOf } from './calls.js';
import { crowds, relays } from './crowds.js';
import type { Defect } from './defect.js';

/** Defects of core. */
export const DEFECTS_OF_CORE: readonly Defect[] = [
  {
    defect: 'the deadline of a grant is counted from the reply',
    finding: /for longer than the store has granted/,
    edits: [['lib/core/leases/attempt.ts', `fence: reply.fence, sent }`, `fence: reply.fence, sent: momentOf(clock) }`]],
  },
  {
    defect: 'the deadline of a grant that came by an exchange is counted from the reply',
    finding: /for longer than the store has granted/,
    scenarios: relays,
    edits: [
      ['lib/core/leases/attempt.ts', 'judge(answered, sent, store, lease, clock)', 'judge(answered, momentOf(clock), store, lease, clock)'],
    ],
  },
  {
    defect: 'an attempt of unknown outcome counts as answered',
    finding: /which was released before/,
    edits: [['lib/core/leases/attempt.ts', '!error.unknown : error', 'true : error']],
  },
  {
    defect: 'the deadline of a renewal is counted from the reply',
    finding: /for longer than the store has granted/,
    seed: 2,
    edits: [['lib/core/leases/renewer.ts', 'records[index] as HoldRecord, sent)', 'records[index] as HoldRecord, momentOf(this.#clock))']],
  },
  {
    defect: 'the wall clock decides about leases',
    finding: /though its lease is over|without a cause/,
    edits: [
      ['lib/core/leases/lease.ts', 'this.remainingMs > 0', 'this.#clock.wall() < this.term.deadline'],
      ['lib/core/leases/lease-term.ts', 'this.#clock.monotonic() >= this.#deadline', 'this.#clock.wall() >= this.#deadline'],
    ],
  },
  {
    defect: 'clocks may not run at different speeds',
    finding: /for longer than the store has granted/,
    edits: [['lib/core/seam/time.ts', 'sentAt + ttlMs * 0.99 - 2', 'sentAt + ttlMs']],
  },
  {
    defect: 'a grant that comes after its own deadline counts',
    finding: /lost without a loss/,
    edits: [['lib/core/leases/attempt.ts', 'return store.expires && ', 'return false && ']],
  },
  {
    defect: 'an attempt of unknown outcome is not given back',
    finding: /has ended, and left/,
    edits: [['lib/core/entering/contender.ts', 'if (isUnknown) {', 'if (false) {']],
  },
  {
    defect: 'a grant for a call that was aborted is not given back',
    finding: /has ended, and left/,
    edits: [['lib/core/entering/contender.ts', 'if (lease.leave()) {', 'if (false) {']],
  },
  {
    defect: 'an aborted call waits on',
    finding: /was aborted, and goes on/,
    edits: [['lib/locks.ts', 'signal ? new AbortableEntry(acquisition, signal, listener) : listener', 'listener']],
  },
  {
    defect: 'a call goes straight past those who wait for its key',
    finding: /free for .* though a live process waited/,
    edits: [['lib/core/entering/entrance.ts', '!lines.mayGoStraight(key, call) || ', '']],
  },
  {
    defect: 'a re-entry goes straight past a sibling that is inside',
    finding: /runs beside/,
    edits: [['lib/core/entering/entrance.ts', 'if (!lease.calls.admits(frame)) {', 'if (false) {']],
  },
  {
    defect: 'a call that was aborted while it asked for its key goes straight in',
    finding: /has ended, and left/,
    edits: [
      ['lib/core/entering/entrance.ts', ' && !acquisition.gaveUp(lifecycle.isClosing)', ''],
      ['lib/core/entering/entrance.ts', 'if (refusal) {\n      this.#refuse(refusal,', 'if (false) {\n      this.#refuse(refusal,'],
    ],
  },
  {
    defect: 'a lock that was lost between its grant and the body is not looked at',
    scenarios: callsOf(true),
    finding: /runs without its lease/,
    edits: [['lib/core/entering/frame.ts', 'const why = this.#endedBy() ?? this.#doubt;', 'const why = undefined as Error | undefined;']],
  },
  {
    defect: 'an attempt that was not granted is forgotten, and another one sent',
    finding: /cannot be had at the end/,
    edits: [['lib/core/entering/entrance.ts', 'this.#keyByKey.enter(acquisition, { lease, line })', 'this.#keyByKey.enter(acquisition)']],
  },
  {
    defect: 'leases are not renewed',
    finding: /without a cause/,
    edits: [['lib/core/leases/lease.ts', 'this.#renews && expires, this.#acquiredAt', 'false, this.#acquiredAt']],
  },
  {
    defect: 'a renewal without an answer counts as a loss',
    finding: /without a cause/,
    edits: [['lib/core/leases/lease.ts', 'held === false && !this.hasEnded', '!held && !this.hasEnded']],
  },
  {
    defect: 'a renewal that says that the lock is gone is not heard',
    finding: /though its lease is over/,
    edits: [['lib/core/leases/lease.ts', 'held === false && !this.hasEnded', 'false']],
  },
  {
    defect: 'nobody watches the deadline',
    finding: /was not told/,
    edits: [['lib/core/leases/lease-term.ts', 'Math.min(this.#deadline, this.#maxHoldAt)', 'this.#maxHoldAt']],
  },
  {
    defect: 'the code is not told of a loss',
    finding: /was not told/,
    edits: [['lib/core/leases/leases.ts', 'lease.calls.notify(loss);', '']],
  },
  {
    defect: 'a loss is told each time that it is seen',
    finding: /told twice/,
    edits: [
      [
        'lib/core/leases/leases.ts',
        `    if (lease.hasEnded) {
      return lease.loss;
    }
    const { lines, releases }`,
        '    const { lines, releases }',
      ],
      [
        'lib/core/leases/leases.ts',
        `    this.#forget(lease);
    lease.lose(loss);`,
        '    lease.lose(loss);',
      ],
    ],
  },
  {
    defect: 'the next caller in the process waits for the body of a lost lock',
    finding: /gave up, though|cannot be had/,
    edits: [
      [
        'lib/core/leases/leases.ts',
        `      lines.endTurn(line);
    }
    return loss;`,
        `    }
    return loss;`,
      ],
    ],
  },
  {
    defect: 'nobody looks again at a lock that was busy',
    finding: /was free for/,
    edits: [
      ['lib/core/entering/contender.ts', 'return now + Math.min(pauseMs, busy ? busy.remainingMs + 1 : pauseMs);', 'return Infinity;'],
    ],
  },
  {
    defect: 'a call enters the lock of an enclosing call without a look at its lease',
    finding: /runs without its lease/,
    edits: [['lib/core/entering/enclosing-locks.ts', 'call.assertHeld();', '']],
  },
  {
    defect: 'a call re-enters the lock of a call that has left',
    finding: /lost without a loss/,
    seed: 19,
    edits: [['lib/core/calls/call-tree.ts', 'while (at?.hasLeft) {', 'while (false) {']],
  },
  {
    defect: 'children that were started in parallel run together',
    finding: /runs beside/,
    edits: [
      [
        'lib/core/calls/call-stack.ts',
        'return (this.#isParallel || top === undefined || call.isInside(top)) && !this.#isKeptFrom(call);',
        'return true;',
      ],
    ],
  },
  {
    defect: 'the first call to leave releases the lock, though others are inside',
    finding: /though its lease is over|runs without its lease|without a loss|returned, though|was not told/,
    edits: [['lib/core/leases/leases.ts', ' || !lease.calls.isEmpty) {', ') {']],
  },
  {
    defect: 'a lock that is lost while the next is waited for is not taken anew',
    finding: /lost without a loss/,
    edits: [['lib/core/entering/key-by-key.ts', 'const lost = at > 0 ?', 'const lost = false ?']],
  },
  {
    defect: 'a lease is renewed only just before it ends',
    finding: /Two owners trust/,
    seed: 25,
    edits: [['lib/core/leases/lease-term.ts', '(this.#grantedMs / 3)', '(this.#grantedMs / 12)']],
  },
  {
    defect: 'a call waits longer than it was asked to',
    finding: /waited for/,
    edits: [['lib/core/entering/acquisition.ts', 'this.started.monotonic + call.waitMs', 'this.started.monotonic + 2 * call.waitMs']],
  },
  {
    defect: 'nobody catches a command that fails in the background',
    finding: /unhandled/i,
    edits: [['lib/core/leases/background-releases.ts', '.catch(() => undefined)', '']],
  },
  {
    defect: 'a renewal that is on its way when maxHold is over renews for ever',
    finding: /though the maxHold of/,
    seed: 27,
    edits: [['lib/core/leases/lease-term.ts', 'if (this.#renewAt < Infinity) {', 'if (true) {']],
  },
  {
    defect: 'a turn that comes before a busy reply is dropped',
    finding: /was free for/,
    scenarios: crowds,
    edits: [['lib/core/leases/line.ts', 'this.#isNotified = true;', '']],
  },
  {
    defect: 'one process may have the lock as often as it likes',
    finding: /unfair/,
    scenarios: crowds,
    edits: [
      ['lib/core/leases/line.ts', 'this.#burst < MOST_FENCES', 'true'],
      ['lib/core/leases/lines.ts', 'this.keepQueues ? BURST_MS : SLICE_MS', 'Infinity'],
    ],
  },
  {
    defect: 'the places of calls that gave up are kept',
    finding: /out of order|was free for/,
    scenarios: crowds,
    edits: [
      ['lib/core/leases/lines.ts', 'this.#releases.leave(line.key, line.place);', ''],
      ['lib/core/leases/lines.ts', 'this.#releases.leave(key, { name });', ''],
    ],
  },
  {
    defect: 'core waits for ever for a store that does not answer',
    finding: /was free for|was not told|never ended/,
    edits: [['lib/core/seam/time-limits.ts', 'if (now >= pending.endsAt) {', 'if (false) {']],
  },
  {
    defect: 'a lease serves the next call though a ticket to it was made',
    finding: /Two owners trust/,
    scenarios: relays,
    edits: [['lib/core/leases/hold.ts', '!this.#hasTicket &&', '']],
  },
  {
    defect: 'a lease serves more calls than its block has fences',
    finding: /which the store did not grant/,
    scenarios: relays,
    edits: [['lib/core/leases/hold.ts', 'this.#fence + 1 < this.#storedFence + this.#fences', 'true']],
  },
  {
    defect: 'a lease serves the next call with the fence of the one before',
    finding: /which is another call's/,
    scenarios: relays,
    edits: [
      ['lib/core/leases/hold.ts', 'this.#fence = before.#fence + (this.shares === undefined ? 1 : 0);', 'this.#fence = before.#fence;'],
    ],
  },
  {
    defect: 'the answer to a renewal is not passed on to the call that is served meanwhile',
    finding: /timers|though its lease is over|was not told|without a cause/,
    scenarios: relays,
    edits: [['lib/core/leases/lease.ts', 'successor.renewalAnswered(held, record, sent);', 'this;']],
  },
];
