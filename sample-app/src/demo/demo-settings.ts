/** What one process of the demo works with; a parent hands it to its children. */
export class DemoSettings {
  constructor(
    /** The letter of this process. */
    readonly process: string,
    /** What the tasks share; a new name each time, so that two demos on one Redis do not meet. */
    readonly account: string,
    /** How long a task takes between its read and its write. */
    readonly workMs: number,
    /** Where locks and balance live; undefined for the memory of this process. */
    readonly redisUrl: string | undefined,
  ) {}
}
