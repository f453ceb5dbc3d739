import * as fc from 'fast-check';
import { accident, fateOf, messages, mostly, ms, rate } from './arbitraries.js';
import {
  FOR_EVER_MS,
  KEYS,
  MOST_PROCESSES,
  type Action,
  type Call,
  type Fate,
  type Lead,
  type Scenario,
  type Step,
  type TicketOf,
} from './scenario.js';

/** None is twice as long as another one, so that a lease of one may serve a call that asks for the other. */
const ttl = mostly(1_000, 2, fc.constantFrom(600, 1_100));
const shortMs = fc.integer({ min: 0, max: 60 });
const ticketOf = fc.constantFrom<TicketOf>('running', 'made before', 'ended');
const key = mostly<string>('a', 3, fc.constant('b'));

const { call, step } = fc.letrec<{ call: Call; step: Step; steps: Step[]; calls: Step }>((tie) => ({
  call: fc.record({
    keys: fc.constantFrom<readonly string[]>(['a'], ['a'], ['a'], ['b'], ['a', 'b']),
    how: fc.constantFrom('withLock', 'withLock', 'withLock', 'acquire', 'tryAcquire', 'generator', 'observable'),
    steps: tie('steps'),
    ttl,
    wait: fc.constantFrom(1_000, 10_000, 10_000, 100, 0),
    renew: mostly(true, 6, fc.constant(false)),
    reentry: mostly('context', 6, fc.constant('never')),
    maxHold: mostly<number | undefined>(undefined, 9, fc.integer({ min: 1, max: 1_000 })),
    minHold: mostly(0, 9, fc.integer({ min: 1, max: 1_000 })),
    abortAfterMs: mostly<number | undefined>(undefined, 7, ms),
    joins: mostly<TicketOf | undefined>(undefined, 4, ticketOf),
    listenerMs: fc.constant(0),
    lateMs: mostly(0, 4, ms),
  }),
  steps: fc.array(tie('step'), { maxLength: 3, depthIdentifier: 'together' }) as fc.Arbitrary<Step[]>,
  calls: fc.record({
    do: fc.constant('call'),
    calls: fc.array(tie('call'), { minLength: 1, maxLength: 2 }),
    awaited: mostly(true, 1, fc.constant(false)),
  }) as fc.Arbitrary<Step>,
  step: fc.oneof(
    { maxDepth: 4, depthIdentifier: 'together' },
    fc.record({ do: fc.constant('sleep'), ms: mostly(5, 1, shortMs) }),
    fc.record({ do: fc.constant('sleep'), ms }),
    tie('calls'),
    fc.record({ do: fc.constant('transaction'), steps: tie('steps'), commitMs: shortMs }),
    fc.record({ do: fc.constantFrom('release', 'make a ticket') }),
    fc.record({ do: fc.constant('outside locks'), steps: tie('steps') }),
    fc.record({ do: fc.constant('enter tickets'), of: ticketOf, key, steps: fc.tuple(tie('calls'), tie('step')) }),
    fc.record({ do: fc.constant('leave behind'), afterMs: shortMs, steps: tie('steps') }),
  ) as fc.Arbitrary<Step>,
}));

const calls = (most: number): fc.Arbitrary<Step> =>
  fc.record({
    do: fc.constant('call'),
    calls: fc.array(call, { minLength: 1, maxLength: most }),
    awaited: fc.boolean(),
  }) as fc.Arbitrary<Step>;

const leaveBehind = (inner: fc.Arbitrary<Step>): fc.Arbitrary<Step> =>
  fc.record({ do: fc.constant('leave behind'), afterMs: shortMs, steps: fc.tuple(inner) }) as fc.Arbitrary<Step>;

const transaction = (...inner: readonly fc.Arbitrary<Step>[]): fc.Arbitrary<Step> =>
  fc.record({ do: fc.constant('transaction'), steps: fc.tuple(...inner), commitMs: shortMs }) as fc.Arbitrary<Step>;

/**
 * Scenarios that rarely come of themselves: transactions after others, and beside each other inside one lock, and a
 * crowd of calls.
 */
const known: fc.Arbitrary<readonly Step[]> = fc.oneof(
  fc.tuple(transaction(calls(2), leaveBehind(transaction(calls(1))), leaveBehind(calls(1)))),
  fc.tuple(calls(3)),
  fc
    .tuple(call, leaveBehind(transaction(calls(1))), leaveBehind(transaction(calls(1))), step)
    .map(([outer, ...inner]) => [{ do: 'call', calls: [{ ...outer, steps: inner }], awaited: true }] as const),
);

const steps = fc.array(step, { minLength: 1, maxLength: 4 });

const lead: fc.Arbitrary<Lead> = fc.record({
  key,
  ttl,
  pause: fc.constantFrom(1, 100, 1_000),
  steps: fc.array(step, { maxLength: 3 }),
  forMs: ms,
});

const action = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('call'), call }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('steps'), steps }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('steps'), steps: known }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('lead'), lead }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('shutdown') }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('force'), key: fc.constantFrom(...KEYS) }) },
  { weight: 3, arbitrary: accident },
) as fc.Arbitrary<Action>;

/** All features at once, mostly of one process and on one key. */
export const together: fc.Arbitrary<Scenario> = fc.record({
  isHard: fc.constant(false),
  namesEnds: fc.boolean(),
  seed: fc.nat(),
  commandTimeoutMs: fc.constantFrom(100, FOR_EVER_MS),
  latencyMs: fc.constant(1),
  processes: fc.array(
    fc.record({ rate, fates: mostly<Fate[]>([], 2, fc.array(fateOf(), { maxLength: 24 })), messages, loggerMs: fc.constant(0) }),
    { minLength: 2, maxLength: MOST_PROCESSES },
  ),
  actions: fc.array(fc.record({ afterMs: mostly(1, 1, shortMs), process: mostly(0, 4, fc.nat({ max: MOST_PROCESSES - 1 })), action }), {
    minLength: 1,
    maxLength: 20,
    size: 'max',
  }),
});
