/**
 * One of the demo's tasks: who ran it and when, in milliseconds of the wall clock, which all processes of a machine
 * share.
 */
export interface TaskRecord {
  readonly task: number;
  /** The letter of its process. */
  readonly process: string;
  /** When it asked to run. */
  readonly arrivedAt: number;
  readonly startedAt: number;
  readonly endedAt: number;
  /** The balance it found, and the one it left, in hundredths; undefined for one that asks for a permit. */
  readonly read?: number;
  readonly wrote?: number;
}

/** A task changes the balance, without the lock or with it, or calls a service with a permit. */
export type TaskKind = 'unlocked' | 'locked' | 'limited';

/** The order that a task gets. */
export interface TaskOrder {
  readonly task: number;
  readonly kind: TaskKind;
}

/** The answer of a child process. */
export interface TaskReply {
  readonly task: number;
  readonly record?: TaskRecord;
  readonly error?: string;
}

/** The sum that each task adds to the balance, in hundredths. */
export const ADDED = 10_00;

/** The balance before each round, in hundredths. */
export const INITIAL = 100_00;

/** How many tasks with permits run at once. */
export const PERMITS = 3;
