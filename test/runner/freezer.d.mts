/** Stops the processes of a family now and then, but for those that a test has stopped. */
export class Freezer {
  constructor(options: { root: number; stoppedByTests: string; seed: number });
  readonly count: number;
  stop(): void;
}
