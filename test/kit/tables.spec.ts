import { DoneMarks } from '../../lib/kit/done-marks';
import { LockTable } from '../../lib/kit/lock-table';
import { DONE_MS, MOST_FENCE } from '../../lib/kit/protocol';
import { newHold } from '../support/new-hold';

let nowMs: number;
let sent: string[];
let table: LockTable;

const clock = { monotonic: (): number => nowMs, wall: (): number => nowMs };
const placeOf = (name: string): { name: string; process: string; polls: boolean } => ({
  name,
  process: `process of ${name}`,
  polls: false,
});

beforeEach(() => {
  [nowMs, sent] = [1_000, []];
  table = new LockTable(clock, { turn: ({ name }) => sent.push(name), forced: () => undefined });
});

describe('a table', () => {
  test('keeps what is held and queued, however many keys come and go', () => {
    const hold = newHold('held', { by: 'holder' });
    table.acquire(hold, 'p');
    table.acquire(newHold('held'), 'q', placeOf('a'));
    for (let count = 0; count < 1_000; count++) {
      const other = newHold(`other ${count}`);
      table.acquire(other, 'p');
      table.release(other);
    }
    expect(table.inspect('held')).toMatchObject({ by: 'holder', waiters: ['process of a'] });
    expect(table.release(hold)).toBe(true);
    expect(sent).toEqual(['a']);
  });

  test('takes a place off the queue also once the lease has ended: no turn comes to who gave it up', () => {
    table.acquire(newHold('k', { ttlMs: 100 }), 'p');
    table.acquire(newHold('k'), 'q', placeOf('a'));
    nowMs += 100;
    table.leave('k', 'a');
    expect(table.acquire(newHold('k'), 'p')).toEqual({ fence: expect.any(Number) });
    expect(sent).toEqual([]);
  });

  test('whose fences are too high says how they become lower', () => {
    nowMs = MOST_FENCE / 1_000 + 1;
    expect(() => table.acquire(newHold('k'), 'p')).toThrow(
      expect.objectContaining({ detail: expect.stringContaining('start the process again') }),
    );
  });
});

describe('the marks of released holds', () => {
  test('are kept for their time, each with its answer', () => {
    const marks = new DoneMarks(clock);
    marks.set('released', true);
    marks.set('unknown', false);
    nowMs += DONE_MS - 1;
    expect([marks.get('released'), marks.get('unknown'), marks.get('other')]).toEqual([true, false, undefined]);
    nowMs += 1;
    expect([marks.get('released'), marks.get('unknown')]).toEqual([undefined, undefined]);
  });
});
