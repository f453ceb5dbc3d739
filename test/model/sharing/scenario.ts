import * as fc from 'fast-check';
import type { Want } from '../../explorer/scope.js';
import { fateOf, messages, mostly, ms, rate } from '../properties/arbitraries.js';
import { FOR_EVER_MS, LONGEST_TTL_MS, type Accident, type Fate, type Scenario } from '../properties/scenario.js';

/** One call that wants the key, and what its body does. */
export interface SharedCall {
  readonly want: Want;
  readonly how: 'with' | 'handle';
  readonly ttl: number;
  readonly wait: number;
  readonly bodyMs: number;
  readonly abortAfterMs: number | undefined;
  /** How it calls on the same key from inside. */
  readonly nested: 'read' | 'write' | undefined;
}

export type SharedAction = { readonly do: 'calls'; readonly calls: readonly SharedCall[] } | Accident;

/** Some processes that share one key. The explorer has the faults of the server, such as its clock that is set. */
export interface SharingScenario extends Omit<Scenario, 'actions'> {
  readonly actions: readonly { readonly afterMs: number; readonly process: number; readonly action: SharedAction }[];
}

const accident = fc.oneof(
  fc.record({ do: fc.constant('pause'), ms }),
  fc.record({ do: fc.constant('cut off'), ms }),
  fc.record({ do: fc.constant('crash'), countedMs: fc.constantFrom(0, 15_000) }),
  fc.record({ do: fc.constant('subscriber breaks'), countedMs: fc.constantFrom(0, 15_000), noticedMs: fc.constantFrom(1, 8_000) }),
  fc.record({ do: fc.constant('wall clock jumps'), ms: fc.integer({ min: -3_000, max: 3_000 }) }),
) as fc.Arbitrary<SharedAction>;

const callOf = (wants: readonly Want[]): fc.Arbitrary<SharedCall> =>
  fc.record({
    want: fc.constantFrom(...wants),
    how: fc.constantFrom('with', 'with', 'handle'),
    // None is twice as long as another one, so that a lease of one may serve another one.
    ttl: fc.constantFrom(1_000, 1_000, 600, LONGEST_TTL_MS),
    wait: fc.constantFrom(10_000, 10_000, 10_000, 100, 0),
    bodyMs: fc.oneof(fc.integer({ min: 0, max: 200 }), ms),
    abortAfterMs: mostly<number | undefined>(undefined, 9, ms),
    nested: mostly<'read' | 'write' | undefined>(undefined, 2, fc.constantFrom('read', 'write')),
  });

/** Readers and writers; permits; and both kinds, one of which is refused. Half of the scenarios have no fault. */
export const sharing: fc.Arbitrary<SharingScenario> = fc
  .tuple(
    fc.constantFrom<readonly Want[]>(['read', 'read', 'write'], ['read', 'write', 'write'], [1, 2, 3, 3], ['write', 'read', 2]),
    fc.boolean(),
  )
  .chain(([wants, isCalm]) =>
    fc.record({
      isHard: fc.constant(false),
      seed: fc.nat(),
      commandTimeoutMs: fc.constantFrom(100, FOR_EVER_MS),
      latencyMs: fc.constant(1),
      processes: fc.array(
        fc.record({
          rate,
          fates: isCalm ? fc.constant<Fate[]>([]) : fc.array(fateOf(), { maxLength: 24 }),
          messages: isCalm ? fc.constant([]) : messages,
          loggerMs: fc.constant(0),
        }),
        { minLength: 2, maxLength: 3 },
      ),
      actions: fc.array(
        fc.record({
          afterMs: mostly(1, 1, fc.integer({ min: 0, max: 60 })),
          process: fc.nat({ max: 2 }),
          action: fc.oneof(
            {
              weight: 8,
              arbitrary: fc.record({ do: fc.constant('calls'), calls: fc.array(callOf(wants), { minLength: 1, maxLength: 4 }) }),
            },
            ...(isCalm ? [] : [{ weight: 2, arbitrary: accident }]),
          ) as fc.Arbitrary<SharedAction>,
        }),
        { minLength: 2, maxLength: 14, size: 'max' },
      ),
    }),
  );
