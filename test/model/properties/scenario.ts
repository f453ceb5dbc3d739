import * as fc from 'fast-check';

/** What the network does with one command: how long each way takes, and what is lost. After a reset, its sender knows at once. */
export interface Fate {
  readonly kind: 'passes' | 'request lost' | 'reply lost' | 'doubled' | 'reset';
  readonly outMs: number;
  readonly backMs: number;
  /** How much later the second copy of a doubled command arrives: it was sent because the first was not answered. */
  readonly lagMs: number;
}

/** One locked call, and what its body does. */
export interface Call {
  readonly keys: readonly string[];
  readonly how: 'withLock' | 'acquire' | 'tryAcquire';
  readonly steps: readonly Step[];
  readonly ttl: number;
  readonly wait: number;
  readonly renew: boolean;
  readonly reentry: 'context' | 'never';
  readonly maxHold: number | undefined;
  readonly minHold: number;
  readonly abortAfterMs: number | undefined;
  /** Enters the lock of whichever call runs, by its ticket. */
  readonly joins: boolean;
  /** How long the listener of its signal works. */
  readonly listenerMs: number;
}

export type Step =
  | { readonly do: 'sleep'; readonly ms: number }
  | { readonly do: 'call'; readonly calls: readonly Call[]; readonly awaited: boolean }
  /** Gives a handle back, though code inside it goes on. */
  | { readonly do: 'release' };

export type Action =
  | { readonly do: 'call'; readonly call: Call }
  | { readonly do: 'crash' | 'flush' }
  | { readonly do: 'pause'; readonly ms: number }
  | { readonly do: 'sleep'; readonly ms: number; readonly refusedMs: number }
  | { readonly do: 'wall clock jumps' | 'clock of the store jumps'; readonly ms: number }
  | { readonly do: 'force'; readonly key: string };

export interface ProcessScript {
  /** How fast its clock runs. */
  readonly rate: number;
  /** Of its commands, one after the other; what comes after them passes. */
  readonly fates: readonly Fate[];
  /** Whether each message to it is lost. */
  readonly lost: readonly boolean[];
  /** How long what it writes of each trouble takes. */
  readonly loggerMs: number;
}

export interface Scenario {
  readonly isHard: boolean;
  readonly seed: number;
  readonly commandTimeoutMs: number;
  readonly processes: readonly ProcessScript[];
  readonly actions: readonly { readonly afterMs: number; readonly process: number; readonly action: Action }[];
}

export const KEYS = ['a', 'b'] as const;
export const LONGEST_TTL_MS = 2_000;

const ms = fc.oneof(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 30, max: 700 }), fc.integer({ min: 300, max: 4_000 }));
const ttl = fc.constantFrom(200, 600, LONGEST_TTL_MS);

/** Mostly the first, and shrunk to it. */
function mostly<T>(usual: T, weight: number, other: fc.Arbitrary<T>): fc.Arbitrary<T> {
  return fc.oneof({ arbitrary: fc.constant(usual), weight }, { arbitrary: other, weight: 1 });
}

const sleeps = fc.record({ do: fc.constant('sleep'), ms: fc.integer({ min: LONGEST_TTL_MS, max: 6_000 }), refusedMs: ms });

/**
 * Hard ones have listeners and loggers that work for long, connections that are reset, and machines that sleep as well; and a fault
 * is no cause of a loss that came long after it.
 */
export function scenariosOf(isHard: boolean): fc.Arbitrary<Scenario> {
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
      joins: mostly(false, 9, fc.constant(true)),
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

  const fate: fc.Arbitrary<Fate> = fc.record({
    kind: fc.constantFrom<Fate['kind']>(
      'passes',
      'passes',
      'passes',
      'passes',
      'request lost',
      'reply lost',
      'doubled',
      ...(isHard ? (['reset'] as const) : []),
    ),
    outMs: mostly(1, 6, ms),
    backMs: mostly(1, 6, ms),
    lagMs: ms,
  });

  const jump = fc.integer({ min: -3_000, max: 3_000 });
  const action = fc.oneof(
    { weight: 12, arbitrary: fc.record({ do: fc.constant('call'), call }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('pause'), ms }) },
    ...(isHard ? [{ weight: 1, arbitrary: sleeps }] : []),
    { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('crash', 'flush') }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('wall clock jumps', 'clock of the store jumps'), ms: jump }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('force'), key: fc.constantFrom(...KEYS) }) },
  ) as fc.Arbitrary<Action>;

  return fc.record({
    isHard: fc.constant(isHard),
    seed: fc.nat(),
    commandTimeoutMs: fc.constantFrom(100, 20, 3_000),
    processes: fc.array(
      fc.record({
        rate: mostly(1, 1, fc.constantFrom(0.996, 1.004)),
        fates: mostly<Fate[]>([], 1, fc.array(fate, { maxLength: 24 })),
        lost: mostly<boolean[]>([], 3, fc.array(fc.boolean(), { maxLength: 4 })),
        loggerMs: isHard ? mostly(0, 9, ms) : fc.constant(0),
      }),
      { minLength: 2, maxLength: 3 },
    ),
    actions: fc.array(fc.record({ afterMs: mostly(1, 1, ms), process: fc.nat({ max: 2 }), action }), { minLength: 1, maxLength: 12 }),
  });
}
