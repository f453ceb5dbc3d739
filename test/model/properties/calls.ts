import * as fc from 'fast-check';
import { accident, fateOf, messages, mostly, ms, rate } from './arbitraries.js';
import {
  FOR_EVER_MS,
  LONGEST_TTL_MS,
  MOST_PROCESSES,
  type Action,
  type Call,
  type Fate,
  type Scenario,
  type Step,
  type TicketOf,
} from './scenario.js';

const ttl = fc.constantFrom(200, 600, LONGEST_TTL_MS);

const sleeps = fc.record({ do: fc.constant('sleep'), ms: fc.integer({ min: LONGEST_TTL_MS, max: 6_000 }), refusedMs: ms });

/**
 * A few calls, nested and with all options. Hard ones also have listeners and loggers that work for long, connections
 * that are reset, and machines that sleep; and a fault is no cause of a loss that came long after it.
 */
export function callsOf(isHard: boolean): fc.Arbitrary<Scenario> {
  const { call } = fc.letrec<{ call: Call; step: Step }>((tie) => ({
    call: fc.record({
      keys: fc.constantFrom<readonly string[]>(['a'], ['a'], ['a'], ['b'], ['a', 'b']),
      how: fc.constantFrom('withLock', 'withLock', 'acquire', 'tryAcquire'),
      steps: fc.array(tie('step'), { maxLength: 3, depthIdentifier: 'calls' }),
      ttl,
      wait: fc.constantFrom(1_000, 0, 100, 10_000),
      renew: mostly(true, 4, fc.constant(false)),
      reentry: mostly('context', 9, fc.constant('never')),
      maxHold: mostly<number | undefined>(undefined, 9, fc.integer({ min: 1, max: 1_000 })),
      minHold: mostly(0, 9, fc.integer({ min: 1, max: 1_000 })),
      abortAfterMs: mostly<number | undefined>(undefined, 5, ms),
      joins: mostly<TicketOf | undefined>(undefined, 9, fc.constant('running')),
      listenerMs: isHard ? mostly(0, 5, ms) : fc.constant(0),
    }),
    step: fc.oneof(
      { maxDepth: 3, depthIdentifier: 'calls' },
      fc.record({ do: fc.constant('sleep'), ms: mostly(1, 1, ms) }),
      fc.record({ do: fc.constant('sleep'), ms }),
      fc.record({
        do: fc.constant('call'),
        calls: fc.array(tie('call'), { minLength: 1, maxLength: 2 }),
        awaited: mostly(true, 1, fc.constant(false)),
      }),
      fc.record({ do: fc.constant('release') }),
    ) as fc.Arbitrary<Step>,
  }));

  const action = fc.oneof(
    { weight: 12, arbitrary: fc.record({ do: fc.constant('call'), call }) as fc.Arbitrary<Action> },
    ...(isHard ? [{ weight: 1, arbitrary: sleeps as fc.Arbitrary<Action> }] : []),
    { weight: 8, arbitrary: accident },
  );
  const fate = isHard ? fateOf('reset') : fateOf();

  return fc.record({
    isHard: fc.constant(isHard),
    seed: fc.nat(),
    commandTimeoutMs: fc.constantFrom(100, 20, FOR_EVER_MS),
    latencyMs: fc.constant(1),
    processes: fc.array(
      fc.record({
        rate,
        fates: mostly<Fate[]>([], 1, fc.array(fate, { maxLength: 24 })),
        messages,
        loggerMs: isHard ? mostly(0, 9, ms) : fc.constant(0),
      }),
      { minLength: 2, maxLength: MOST_PROCESSES },
    ),
    actions: fc.array(fc.record({ afterMs: mostly(1, 1, ms), process: fc.nat({ max: MOST_PROCESSES - 1 }), action }), {
      minLength: 1,
      maxLength: 12,
    }),
  });
}
