import type { TaskOrder, TaskRecord } from './task.js';

/** One process that runs tasks. */
export interface Member {
  /** Its letter. */
  readonly name: string;
  readonly pid: number;
  run(order: TaskOrder): Promise<TaskRecord>;
  leave(): Promise<void>;
}
