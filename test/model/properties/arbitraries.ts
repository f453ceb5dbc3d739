import * as fc from 'fast-check';
import { KEYS, type Action, type Fate, type MessageFate } from './scenario.js';

export const ms = fc.oneof(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 30, max: 700 }), fc.integer({ min: 300, max: 4_000 }));

/** Mostly the first, and shrunk to it. */
export function mostly<T>(usual: T, weight: number, other: fc.Arbitrary<T>): fc.Arbitrary<T> {
  return fc.oneof({ arbitrary: fc.constant(usual), weight }, { arbitrary: other, weight: 1 });
}

/** The fate of a command: it mostly passes. */
export function fateOf(...faults: Fate['kind'][]): fc.Arbitrary<Fate> {
  return fc.record({
    kind: fc.constantFrom<Fate['kind']>('passes', 'passes', 'passes', 'passes', 'request lost', 'reply lost', 'doubled', ...faults),
    outMs: mostly(1, 6, ms),
    backMs: mostly(1, 6, ms),
    lagMs: ms,
  });
}

export const messages = mostly<MessageFate[]>(
  [],
  3,
  fc.array(fc.constantFrom('arrives', 'is lost', 'is late', 'comes twice'), { maxLength: 6 }),
);

/** A clock runs at the speed of the store's, or a little slower or faster. */
export const rate = mostly(1, 1, fc.constantFrom(0.996, 1.004));

/** Half-open connections are counted for long. */
const countedMs = fc.constantFrom(0, 0, 15_000, 40_000);

const jump = fc.integer({ min: -3_000, max: 3_000 });

/** The accidents besides those of the network. */
export const accident = fc.oneof(
  { weight: 2, arbitrary: fc.record({ do: fc.constant('pause'), ms }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cut off'), ms }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('subscriber breaks'), countedMs, noticedMs: fc.constantFrom(1, 50, 8_000) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('crash'), countedMs }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('flush', 'restart') }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('wall clock jumps', 'clock of the store jumps'), ms: jump }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('force'), key: fc.constantFrom(...KEYS) }) },
) as fc.Arbitrary<Action>;
