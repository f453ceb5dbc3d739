import { describe, expect, it } from '@jest/globals';
import { describeLimited, describeLocked, describeUnlocked } from '../src/demo/report.js';
import type { TaskRecord } from '../src/demo/task.js';

/** A task that arrives at, starts at and ends at so many ms. */
function task(number: number, process: string, times: [number, number, number], read: number): TaskRecord {
  const [arrivedAt, startedAt, endedAt] = times;
  return { task: number, process, arrivedAt, startedAt, endedAt, read, wrote: read + 1000 };
}

describe("the demo's report", () => {
  it('counts lost updates and tasks that ran at the same time', () => {
    const records = [task(1, 'A', [0, 0, 100], 10_000), task(2, 'B', [50, 50, 150], 10_000), task(3, 'A', [150, 150, 200], 11_000)];
    const text = describeUnlocked({ records, balance: 12_000 });
    expect(text).toContain('up to 2 ran at the same time');
    expect(text).toContain('The balance is 120.00 and should be 130.00: 1 of 3 updates were lost.');
  });

  it('draws who waited and who ran, to scale', () => {
    const text = describeLocked({ records: [task(1, 'A', [0, 0, 50], 10_000), task(2, 'B', [0, 50, 100], 11_000)], balance: 12_000 }, true);
    expect(text).toContain(`     1    A     ${'#'.repeat(28)}${' '.repeat(28)}  100.00  110.00`);
    expect(text).toContain(`     2    B     ${'.'.repeat(28)}${'#'.repeat(28)}  110.00  120.00`);
    expect(text).toContain('The two are the same, also between the processes.');
  });

  it('says where the order of arrival was not kept', () => {
    const records = [
      task(1, 'A', [0, 0, 10], 10_000),
      task(2, 'B', [1, 30, 40], 13_000),
      task(3, 'A', [2, 20, 30], 12_000),
      task(4, 'A', [3, 10, 20], 11_000),
    ];
    const text = describeLocked({ records, balance: 14_000 }, true);
    expect(text).toContain('arrived in the order  1 2 3 4');
    expect(text).toContain('ran in the order       1 4 3 2');
    expect(text).toContain('kept within each process? A: no, B: yes.');
  });

  it('claims no order between processes for a store that keeps none, whatever was seen', () => {
    const [first, second] = [task(1, 'A', [0, 0, 50], 10_000), task(2, 'B', [10, 50, 100], 11_000)];
    const same = describeLocked({ records: [first, second], balance: 12_000 }, false);
    expect(same).toContain('The two are the same this time; a quorum keeps no order between processes');
    expect(same).not.toContain('also between the processes');
    const [earlier, later] = [task(1, 'A', [0, 50, 100], 11_000), task(2, 'B', [10, 10, 50], 10_000)];
    const differing = describeLocked({ records: [earlier, later], balance: 12_000 }, false);
    expect(differing).toContain('The two differ: a quorum keeps no order between processes');
    expect(differing).not.toContain('up to 16');
  });

  it('draws how many ran at once under permits, and the order of the queue', () => {
    const records = [
      task(1, 'A', [0, 0, 56], 0),
      task(2, 'A', [0, 0, 28], 0),
      task(3, 'B', [0, 0, 14], 0),
      task(4, 'B', [7, 28, 42], 0),
      task(5, 'B', [7, 14, 56], 0),
    ];
    const lines = describeLimited(records).split('\n');
    expect(lines).toContain(`     4    B            .....................${'#'.repeat(14)}`);
    expect(lines).toContain(`  at once       ${'3'.repeat(42)}${'2'.repeat(14)}`);
    expect(lines).toContain('  At most 3 ran at the same time.');
    expect(lines).toContain('  and ran in the order       1 2 3 5 4');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100);
  });
});
