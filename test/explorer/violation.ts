/** One step of the world, as it is told. */
export interface Step {
  readonly now: number;
  readonly who: string;
  readonly what: string;
}

/** A promise that a state, or the step to it, breaks. */
export class Violation extends Error {
  /** The steps after the last choice, where nothing went wrong any more. */
  after: readonly Step[] = [];
}
