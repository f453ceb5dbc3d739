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
  type TicketOf,
} from './scenario.js';

/** Longer than any crowd takes. */
const PATIENT_MS = 300_000;
const MOST_CALLS = 50;

const shortCall: fc.Arbitrary<Call> = fc.record({
  keys: fc.constant(['a']),
  how: mostly('withLock', 4, fc.constant('tryAcquire')),
  steps: fc.tuple(fc.record({ do: fc.constant('sleep'), ms: mostly(5, 6, ms) })),
  ttl: fc.constantFrom(600, 200, LONGEST_TTL_MS),
  wait: fc.constantFrom(PATIENT_MS, PATIENT_MS, 1_000, 20, 0),
  renew: fc.constant(true),
  reentry: fc.constant('context'),
  maxHold: fc.constant(undefined),
  minHold: fc.constant(0),
  abortAfterMs: mostly<number | undefined>(undefined, 9, ms),
  joins: fc.constant(undefined),
  listenerMs: fc.constant(0),
});

/** Calls of about one kind, whose leases may serve each other, and a few that they may not. */
const likeCall: fc.Arbitrary<Call> = fc.record({
  keys: fc.constant(['a']),
  how: mostly('withLock', 4, fc.constant('acquire')),
  steps: fc.tuple(fc.record({ do: fc.constant('sleep'), ms: mostly(5, 2, ms) })),
  ttl: mostly(200, 9, fc.constant(600)),
  wait: fc.constant(PATIENT_MS),
  renew: mostly(true, 9, fc.constant(false)),
  reentry: fc.constant('context'),
  maxHold: mostly<number | undefined>(undefined, 9, fc.integer({ min: 1, max: 300 })),
  minHold: fc.constant(0),
  abortAfterMs: mostly<number | undefined>(undefined, 9, ms),
  joins: mostly<TicketOf | undefined>(undefined, 5, fc.constant('running')),
  listenerMs: fc.constant(0),
});

/**
 * Many short calls for one key: the queue, its turns, and bursts of one process. In a part of the scenarios nothing
 * goes wrong.
 */
export const crowds = crowdsOf(shortCall);

/** Many calls of one kind for one key, most of them of one process: leases that serve one call after the other. */
export const relays = crowdsOf(likeCall, true);

function crowdsOf(call: fc.Arbitrary<Call>, isAlwaysLopsided = false): fc.Arbitrary<Scenario> {
  return fc
    .record({
      everyMs: fc.constantFrom(1, 10, 100),
      isCalm: mostly(false, 2, fc.constant(true)),
      isLopsided: isAlwaysLopsided ? fc.constant(true) : fc.boolean(),
    })
    .chain(({ everyMs, isCalm, isLopsided }) => {
      const action = fc.oneof(
        { weight: 12, arbitrary: fc.record({ do: fc.constant('call'), call }) as fc.Arbitrary<Action> },
        ...(isCalm ? [] : [{ weight: 1, arbitrary: accident }]),
      );
      const fates = mostly<Fate[]>([], 1, fc.array(fateOf('sender stops'), { maxLength: 60, size: 'max' }));
      const process = isLopsided ? mostly(0, 4, fc.nat({ max: MOST_PROCESSES - 1 })) : fc.nat({ max: MOST_PROCESSES - 1 });
      return fc.record({
        isHard: fc.constant(false),
        seed: fc.nat(),
        commandTimeoutMs: fc.constantFrom(250, FOR_EVER_MS),
        latencyMs: fc.constantFrom(1, 4),
        processes: fc.array(
          fc.record({
            rate,
            fates: isCalm ? fc.constant([]) : fates,
            messages: isCalm ? fc.constant([]) : messages,
            loggerMs: fc.constant(0),
          }),
          { minLength: 2, maxLength: MOST_PROCESSES },
        ),
        actions: fc.array(fc.record({ afterMs: fc.nat({ max: everyMs }), process, action }), {
          minLength: 1,
          maxLength: MOST_CALLS,
          size: 'max',
        }),
      });
    });
}
