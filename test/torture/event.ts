import type { Shares } from '../../lib/core/words/call-options.js';

/**
 * One line of a history. `invoke` comes before an operation, `ok` and `fail` after it; `info` is an outcome that nobody
 * knows, or something that happened.
 *
 * | op | what it tells |
 * |---|---|
 * | `acquire` | a grant that is asked for, with its fence, which a permit has not, and the deadline of its lease |
 * | `enter` | an entry into a lock that runs already: nested, or by a ticket |
 * | `trust` | at this moment the lock was held; `deadline` is until when without a renewal |
 * | `release` | `invoke` when the body has ended, then how the call ended |
 * | `lost` | the signal notified of a loss |
 * | `write` | an increment of a register: `claimed` with the fence, or `plain` |
 * | `stall` | the event loop stood still since `since`; with `servers`, these did not answer since then |
 * | `slept` | the machine of the process slept since `since`, which its monotonic clock did not count |
 * | `connections` | since `since`, a server had up to `count` at once; its clients' pools have `most` altogether |
 * | `leader` | an event of the candidate of a process: `outcome` is its change |
 * | `start`, `stop` | the process, or the fault with the number `step`, by its name in `fault` |
 * | `skip` | the nemesis left a fault out, because the one before it was not over |
 */
export interface HistoryEvent {
  readonly process: string;
  readonly op:
    'acquire' | 'enter' | 'trust' | 'release' | 'lost' | 'write' | 'stall' | 'slept' | 'connections' | 'leader' | 'start' | 'stop' | 'skip';
  readonly phase: 'invoke' | 'ok' | 'fail' | 'info';
  /** Nanoseconds of `process.hrtime.bigint()`, one clock for all processes of a machine; milliseconds here. */
  readonly t: number;
  readonly key?: string | undefined;
  /** One for each outermost acquisition. */
  readonly owner?: string | undefined;
  /** One for each entry of a process into a lock. */
  readonly hold?: string | undefined;
  readonly fence?: number | undefined;
  /** `read`, or the count of a permit; undefined for what is alone in its key. */
  readonly shares?: Shares | undefined;
  readonly deadline?: number | undefined;
  /** For how long a call may wait, where it is not what most wait for, in milliseconds. */
  readonly waitMs?: number | undefined;
  /** Whether its lease is not renewed. */
  readonly isFixed?: boolean | undefined;
  readonly since?: number | undefined;
  readonly count?: number | undefined;
  readonly most?: number | undefined;
  /** How a call ended: `returned`, `thrown`, or the code and reason of its lock error. */
  readonly outcome?: string | undefined;
  /** The message of the error that it ended with, for people. */
  readonly why?: string | undefined;
  readonly register?: 'claimed' | 'plain' | undefined;
  readonly fault?: string | undefined;
  /** Which fault of the run it is: two of one name may overlap. */
  readonly step?: number | undefined;
  /** The target of a fault: a process, a key, or the servers. */
  readonly target?: string | undefined;
  /** Which servers a fault struck, or the links to which, or were slow, by their numbers; undefined for all. */
  readonly servers?: readonly number[] | undefined;
}
