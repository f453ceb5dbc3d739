import type { LockPlace } from '../lock-place.js';

/** What one process of the demo works with; a parent hands it to its children. */
export class DemoSettings {
  constructor(
    /** The letter of this process. */
    readonly process: string,
    /** What the tasks share; a new name each time, so that two demos on one server do not meet. */
    readonly account: string,
    /** How long a task takes between its read and its write. */
    readonly workMs: number,
    readonly locks: LockPlace,
  ) {}
}
