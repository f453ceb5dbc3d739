import { formatAmount } from '../money/amount.js';
import type { TaskRecord } from './task.js';

/** The columns of the bars; a line is then 90 wide. */
const WIDTH = 56;

/** A line per task: `.` while it waits, `#` while it runs. */
export function drawTimeline(records: readonly TaskRecord[]): string {
  const begin = Math.min(...records.map((record) => record.arrivedAt));
  const end = Math.max(...records.map((record) => record.endedAt));
  const column = (moment: number): number => Math.round(((moment - begin) / (end - begin)) * WIDTH);
  const duration = `${end - begin} ms`;
  const head = `  task process  0 ms${duration.padStart(WIDTH - 4)}  found    left`;
  const lines = records.map((record) => {
    const { task, process } = record;
    return `  ${String(task).padStart(4)}    ${process}     ${barOf(record, column)}  ${money(record.read)}  ${money(record.wrote)}`;
  });
  return [head, ...lines].join('\n');
}

function barOf({ arrivedAt, startedAt, endedAt }: TaskRecord, column: (moment: number) => number): string {
  const from = column(arrivedAt);
  const start = column(startedAt);
  const to = Math.max(column(endedAt), start + 1);
  return (' '.repeat(from) + '.'.repeat(start - from) + '#'.repeat(to - start)).padEnd(WIDTH);
}

function money(hundredths: number): string {
  return formatAmount(BigInt(hundredths)).padStart(6);
}
