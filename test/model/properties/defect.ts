import type * as fc from 'fast-check';
import type { Edit } from '../../support/defective.js';
import type { Scenario } from './scenario.js';

/** A defect of the library that the scenarios must find, and how it shows. */
export interface Defect {
  readonly defect: string;
  readonly finding: RegExp;
  readonly edits: readonly Edit[];
  /** Few calls with all options, where nothing else is said. */
  readonly scenarios?: fc.Arbitrary<Scenario>;
  /** Of the scenarios that show it soon; 1 where nothing is said. */
  readonly seed?: number;
}
