import type { ServerClock } from '../../kit/server-clock.js';
import type { Standing } from './standing.js';

/** One connection to a server that is ready. All answers on it come from one run of the server. */
export class Session {
  /** The clock of the server's machine. */
  readonly clock: ServerClock;
  #run: string | undefined;
  #standing: Standing | undefined;
  #counts = false;
  #countsUntil = 0;
  #reason = '';
  #times = 0;

  constructor(clock: ServerClock) {
    this.clock = clock;
  }

  /** The id of the run, once it is known. */
  get run(): string | undefined {
    return this.#run;
  }

  /** The last answer of the server. */
  get standing(): Standing | undefined {
    return this.#standing;
  }

  /** Whether the server's votes counted when it answered last. */
  get counts(): boolean {
    return this.#counts;
  }

  foundRun(run: string): void {
    this.#run = run;
  }

  /** The server answered a report. Its votes count until a time of its clock, or a later report. */
  answered(standing: Standing, counts: boolean, until: number): void {
    this.#standing = standing;
    this.#counts = counts;
    this.#countsUntil = until;
  }

  /**
   * Whether a vote counts that was given at `serverMs`, by the server's clock. Where the machine of this process slept,
   * no vote counts from then on.
   */
  countsAt(serverMs: number): boolean {
    this.#counts &&= serverMs < this.#countsUntil;
    return this.#counts;
  }

  /** A check has found a reason why the votes do not count, or none (''); how often in a row it was found by now. */
  found(reason: string): number {
    this.#times = reason === this.#reason ? this.#times + 1 : 1;
    this.#reason = reason;
    return this.#times;
  }
}
