import type { LockPlace } from '../lock-place.js';

/** The settings of one process of the demo; a parent hands them to its children. */
export class DemoSettings {
  constructor(
    /** The letter of this process. */
    readonly process: string,
    /** The account that the tasks share; a new name each time, so that two demos on one server do not meet. */
    readonly account: string,
    /** How long a task takes between its read and its write. */
    readonly workMs: number,
    readonly locks: LockPlace,
  ) {}
}
