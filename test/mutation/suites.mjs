/**
 * The suites that mutants meet, in this order: all of them in one process, without a server. The suites that find most
 * in the least time come first.
 */
export const SUITES = [
  'test/stores/lock-table.spec.ts',
  'test/stores/kit/withdrawals.spec.ts',
  'test/stores/kit/clocks.spec.ts',
  'test/stores/kit/notifications.spec.ts',
  'test/stores/kit/batches.spec.ts',
  'test/stores/kit/answers.spec.ts',
  'test/stores/kit/tables.spec.ts',
  'test/core/lease.spec.ts',
  'test/core/call-stack.spec.ts',
  'test/core/waiter.spec.ts',
  'test/core/transaction.spec.ts',
  'test/core/wrapped-store.spec.ts',
  'test/core/availability.spec.ts',
  'test/core/lifecycle.spec.ts',
  'test/stores/memory.spec.ts',
  'test/stores/memory-contract.spec.ts',
  'test/stores/polled-memory.spec.ts',
  'test/stores/polled-memory-contract.spec.ts',
  'test/core/guests.spec.ts',
  'test/core/releases.spec.ts',
  'test/core/asking.spec.ts',
  'test/core/straight.spec.ts',
  'test/core/lines.spec.ts',
  'test/core/renewer.spec.ts',
  'test/core/max-waiters.spec.ts',
  'test/core/late-join.spec.ts',
  'test/core/losses.spec.ts',
  'test/core/ticket.spec.ts',
  'test/core/time-limits.spec.ts',
  'test/core/endings.spec.ts',
  'test/core/relay.spec.ts',
  'test/core/renewal.spec.ts',
  'test/core/transactions.spec.ts',
  'test/core/health.spec.ts',
  'test/core/refusals.spec.ts',
  'test/core/away.spec.ts',
  'test/core/leader.spec.ts',
  'test/core/key-template.spec.ts',
  'test/core/parameter-names.spec.ts',
  'test/core/version.spec.ts',
  'test/core/errors.spec.ts',
  'test/core/lock-key.spec.ts',
  'test/core/caller.spec.ts',
  'test/core/call-options.spec.ts',
  'test/core/once-per-key.spec.ts',
  'test/core/shown.spec.ts',
  'test/security/handles.spec.ts',
  'test/security/limits.spec.ts',
  'test/security/messages.spec.ts',
  'test/stores/reopening.spec.ts',
  'test/stores/stores.spec.ts',
  'test/nest/wrong-use.spec.ts',
  'test/nest/misuse.spec.ts',
  'test/nest/options-elsewhere.spec.ts',
  'test/nest/health.spec.ts',
  'test/nest/call-functions.spec.ts',
  'test/testing/lock-testing.spec.ts',
  'test/nest/watching.spec.ts',
  'test/nest/events.spec.ts',
  'test/nest/telemetry.spec.ts',
  'test/core/watching.spec.ts',
  'test/core/peers.spec.ts',
  'test/core/refused-calls.spec.ts',
  'test/core/longest-lease.spec.ts',
  'test/core/lock-handle.spec.ts',
  'test/core/cycles.spec.ts',
  'test/core/waits.spec.ts',
  'test/core/aborts.spec.ts',
  'test/core/contending.spec.ts',
  'test/core/key-by-key.spec.ts',
  'test/mutation/model.ts',
];

/** The suites that wait for timers: time is played for them, as `playTime` does it, and nothing waits for it. */
export const IN_PLAYED_TIME = [
  'test/stores/memory.spec.ts',
  'test/stores/memory-contract.spec.ts',
  'test/stores/polled-memory.spec.ts',
  'test/stores/polled-memory-contract.spec.ts',
];

/*
 * Of the mutants that were left at the last count, these could be seen:
 *
 * - in the kit, which of two equally distant clocks is shown, and what replaces odd characters of a host's name;
 * - `seam/time.ts:49`: a lease is doubted two milliseconds earlier;
 * - `watching/reporter.ts:146`: an event `cycle` of a call that got the key all the same;
 * - `entering/acquisition.ts:133`: the reason of a refusal, where a listener of that event aborts the call;
 * - `entering/key-by-key.ts:127`: a call of a transaction that waits beside one that has the lock.
 */

/**
 * Tests, by a part of their names, that need a server, block the thread, or compute for longer than others: a mutant
 * that survives meets each such test that covers it.
 */
export const LEFT_OUT = [
  'test/nest/events.spec.ts: on a server',
  'test/nest/telemetry.spec.ts: on a server',
  'a blocked event loop',
  'no wake-up is lost in thousands of hand-overs',
  '5,000 callers of one process',
  'aborting a waiter costs the same however many wait',
  'each of which begins in the context that the last one left behind are not kept in memory',
  'which ends a moment later, do not grow in memory',
  'a section that outlives ten times its ttl is remembered for a thousand keys',
  'once it is garbage collected',
  'a handle that nobody released is not one that was released',
  'answers that nobody asked for, and names that come only once, are not kept',
  'a lock has at most 1000 holds',
  'many keys with one waiter each are all served',
  'compiles without experimentalDecorators',
  'a cycle that is none, told by a stranger who reads all messages',
  'maxHold of the module ends a lock that names none of its own',
];
