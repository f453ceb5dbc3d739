import type { Round } from './round.js';
import { ADDED, INITIAL, type TaskRecord } from './task.js';

/** The course of a round, worked out from measurements. */
export interface Course {
  /** The most tasks that ran at the same moment. */
  readonly mostAtOnce: number;
  readonly arrived: readonly number[];
  readonly ran: readonly number[];
  /** Whether the tasks ran in the order in which they had arrived: all of them, and among those of each process. */
  readonly inOrder: boolean;
  readonly inOrderWithin: ReadonlyMap<string, boolean>;
}

/** The verdict on a round in which all tasks changed one balance. */
export interface Verdict extends Course {
  /** The balance that is expected, in hundredths. */
  readonly expected: number;
  readonly lost: number;
}

export function judge({ records, balance }: Round): Verdict {
  const expected = INITIAL + records.length * ADDED;
  return { ...courseOf(records), expected, lost: (expected - balance) / ADDED };
}

export function courseOf(records: readonly TaskRecord[]): Course {
  const processes = [...new Set(records.map((record) => record.process))];
  return {
    mostAtOnce: Math.max(...records.map((record) => runningAt(record.startedAt, records))),
    arrived: orderBy('arrivedAt', records),
    ran: orderBy('startedAt', records),
    inOrder: ranAsArrived(records),
    inOrderWithin: new Map(processes.map((name) => [name, ranAsArrived(records.filter((record) => record.process === name))])),
  };
}

function runningAt(moment: number, records: readonly TaskRecord[]): number {
  return records.filter(({ startedAt, endedAt }) => startedAt <= moment && moment < endedAt).length;
}

function orderBy(time: 'arrivedAt' | 'startedAt', records: readonly TaskRecord[]): number[] {
  return records.toSorted((one, other) => one[time] - other[time] || one.task - other.task).map((record) => record.task);
}

function ranAsArrived(records: readonly TaskRecord[]): boolean {
  return orderBy('arrivedAt', records).join() === orderBy('startedAt', records).join();
}
