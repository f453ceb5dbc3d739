import { formatAmount } from '../money/amount.js';
import type { TaskRecord } from './task.js';

/** The columns of the bars; a line is then 90 wide at most. */
const WIDTH = 56;
/** The columns before them. */
const MARGIN = 16;

/** A line per task: `.` while it waits, `#` while it runs. With the balances that it found and left. */
export function drawTimeline(records: readonly TaskRecord[]): string {
  const [head, ...lines] = draw(records);
  const balances = records.map(({ read = 0, wrote = 0 }) => `  ${money(read)}  ${money(wrote)}`);
  return [`${head}  found    left`, ...lines.map((line, index) => `${line}${balances[index]}`)].join('\n');
}

/** A line per task, and below them how many ran in each moment. */
export function drawCounted(records: readonly TaskRecord[]): string {
  const [head, ...lines] = draw(records);
  const running = Array.from({ length: WIDTH }, (_, column) => lines.filter((line) => line[MARGIN + column] === '#').length);
  return [head, ...lines, `${'  at once'.padEnd(MARGIN)}${running.join('')}`].map((line) => line?.trimEnd()).join('\n');
}

function draw(records: readonly TaskRecord[]): string[] {
  const begin = Math.min(...records.map((record) => record.arrivedAt));
  const end = Math.max(...records.map((record) => record.endedAt));
  const column = (moment: number): number => Math.round(((moment - begin) / (end - begin)) * WIDTH);
  const duration = `${end - begin} ms`;
  return [
    `  task process  0 ms${duration.padStart(WIDTH - 4)}`,
    ...records.map((record) => `  ${String(record.task).padStart(4)}    ${record.process}     ${barOf(record, column)}`),
  ];
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
