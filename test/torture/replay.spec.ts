import { checkHistories } from './checks/histories';
import type { Operation } from './operation';
import { replay, type KeyReplay } from './replay/replay';
import { openLibrary, type Library } from '../support/open-table';

const STORE = 'w1.1#1';
const OTHER = 'w2.1#1';
const START_MS = 1_750_000_000_000;

let library: Library;

beforeAll(async () => {
  library = await openLibrary();
});

type Said = Partial<Operation> & Pick<Operation, 'op'>;

/** An operation on the key `k` that took a millisecond. */
function at(invoke: number, said: Said): Operation {
  const isAttempt = said.op === 'acquire' || said.op === 'exchange';
  return {
    process: (said.store ?? STORE).slice(0, 4),
    store: STORE,
    key: 'k',
    invoke,
    return: invoke + 1,
    outcome: 'ok',
    fence: 0,
    fences: 1,
    ttl: 1_000,
    owner: said.hold && `owner of ${said.hold}`,
    ...(isAttempt && { reply: 'ok' as const }),
    ...said,
  };
}

/** The fence of a grant at that time. */
function fenceAt(ms: number): number {
  return (START_MS + ms) * 1_000;
}

function acquired(ms: number, hold: string, said: Partial<Operation> = {}): Operation {
  return at(ms, { op: 'acquire', hold, granted: fenceAt(ms), place: `place of ${hold}`, ...said });
}

function busy(ms: number, hold: string, said: Partial<Operation> = {}): Operation {
  return at(ms, { op: 'acquire', hold, store: OTHER, place: `place of ${hold}`, ...said });
}

function released(ms: number, hold: string, answer = true): Operation {
  return at(ms, { op: 'release', hold, answer });
}

function replayOf(...operations: Operation[]): KeyReplay {
  return replay(library, operations, 'one')[0] as KeyReplay;
}

/** The times of what no run of the table explains. */
function unexplained(...operations: Operation[]): number[] {
  const { violations, givenUp } = replayOf(...operations);
  expect(givenUp).toEqual([]);
  return violations.map(({ from }) => from);
}

describe('what is a run of the table', () => {
  test('a grant, a busy answer, a hand-over and the grant to the one that queued', () => {
    expect(
      unexplained(acquired(0, 'a'), busy(10, 'b', { remaining: 990 }), released(50, 'a'), acquired(60, 'b', { store: OTHER })),
    ).toEqual([]);
  });

  test('operations at one time, in whichever order explains them', () => {
    const late = { return: 100 };
    expect(
      unexplained(acquired(0, 'a', late), busy(2, 'b'), { ...released(3, 'a'), return: 90 }, acquired(5, 'c', { return: 95 })),
    ).toEqual([5]);
    expect(unexplained(acquired(0, 'a', late), busy(2, 'b'), { ...released(3, 'a'), return: 90 })).toEqual([]);
  });

  test('a lease that has ended is free, for whoever comes first', () => {
    expect(unexplained(acquired(0, 'a'), acquired(1_010, 'c', { store: OTHER }))).toEqual([]);
    expect(unexplained(acquired(0, 'a'), acquired(980, 'c', { store: OTHER }))).toEqual([980]);
  });

  test('what has no known outcome was carried out or not, and each key is judged alone', () => {
    const release: Operation = { ...released(50, 'a'), outcome: 'unknown', answer: undefined };
    expect(unexplained(acquired(0, 'a'), release, acquired(60, 'b', { store: OTHER }))).toEqual([]);
    expect(unexplained(acquired(0, 'a'), release, busy(60, 'b', { remaining: 940 }))).toEqual([]);
    expect(unexplained(acquired(0, 'a'), { ...release, outcome: 'failed' }, acquired(60, 'b', { store: OTHER }))).toEqual([60]);
    expect(
      replay(library, [acquired(0, 'a'), acquired(10, 'b', { key: 'another' })], 'one').flatMap(({ violations }) => violations),
    ).toEqual([]);
  });

  test('a process that is killed may have got what it asked for', () => {
    const asked: Operation = { ...acquired(0, 'a'), outcome: 'unknown', return: undefined, granted: undefined };
    expect(unexplained(asked, busy(500, 'b', { remaining: 501 }), acquired(1_020, 'b', { store: OTHER }))).toEqual([]);
  });
});

describe('faults', () => {
  const queue = [acquired(0, 'a'), busy(10, 'b'), busy(20, 'c', { store: 'w3.1#1' }), released(50, 'a')];
  const passedOver = acquired(60, 'c', { store: 'w3.1#1' });

  test('a lock that was deleted is free, that key at that time and no other', () => {
    const taken = (key: string, ms: number): Operation => ({ ...at(ms, { op: 'forget', what: 'lock', key }), process: 'nemesis' });
    expect(unexplained(acquired(0, 'a'), taken('k', 50), acquired(60, 'b'))).toEqual([]);
    expect(unexplained(acquired(0, 'a'), taken('k', 150), acquired(60, 'b'))).toEqual([60]);
    const others = replay(library, [acquired(0, 'a'), taken('another', 50), acquired(60, 'b')], 'one');
    expect(others.flatMap(({ violations }) => violations)).toHaveLength(1);
  });

  test('a place of a process that was away is skipped, and no other', () => {
    const away = at(45, { op: 'away', store: undefined, return: 70 });
    expect(unexplained(...queue, passedOver)).toEqual([60]);
    expect(unexplained(...queue, passedOver, { ...away, process: 'w2.1' })).toEqual([]);
    expect(unexplained(...queue, passedOver, { ...away, process: 'w3.1' })).toEqual([60]);
    expect(unexplained(...queue, passedOver, { ...away, process: 'w2.1', invoke: 300, return: 400 })).toEqual([60]);
  });

  test('servers that forgot everything begin anew, and what they do then is judged again', () => {
    const flush: Operation = { ...at(40, { op: 'forget', what: 'everything', key: undefined }), process: 'nemesis' };
    expect(unexplained(...queue.slice(0, 3), flush, passedOver, acquired(80, 'd'))).toEqual([80]);
  });

  test('where nobody knows what the servers have, it is judged again from the first grant after', () => {
    const failover: Operation = { ...at(40, { op: 'forget', what: 'anything', key: undefined }), process: 'nemesis', return: 200 };
    const after = [acquired(300, 'd'), acquired(320, 'e', { store: OTHER })];
    expect(unexplained(...queue.slice(0, 3), failover, acquired(60, 'f'), ...after)).toEqual([320]);
  });
});

/** No two of them trust the lock at once, fences rise, and every call ends as it may: no other check sees these. */
describe('what only a replay finds', () => {
  test('a grant to somebody while another is first', () => {
    const barging = acquired(60, 'c', { store: 'w3.1#1' });
    expect(unexplained(acquired(0, 'a'), busy(10, 'b'), released(50, 'a'), barging)).toEqual([60]);
  });

  test('a grant before the turn of another has ended, and not one after it', () => {
    const turned = [acquired(0, 'a'), busy(10, 'b'), released(50, 'a')];
    expect(unexplained(...turned, acquired(1_000, 'c', { store: 'w3.1#1' }))).toEqual([1_000]);
    expect(unexplained(...turned, acquired(1_070, 'c', { store: 'w3.1#1' }))).toEqual([]);
  });

  test('a place that is lost: who asked again has gone to the end of the queue', () => {
    const queue = [acquired(0, 'a'), busy(10, 'b'), busy(20, 'c', { store: 'w3.1#1' }), busy(30, 'b'), released(50, 'a')];
    expect(unexplained(...queue, acquired(60, 'c', { store: 'w3.1#1' }))).toEqual([60]);
    expect(unexplained(...queue, acquired(60, 'b', { store: OTHER }))).toEqual([]);
  });

  test('a done mark that did not hold: an acquire of before is carried out after its release', () => {
    const late: Operation = { ...acquired(20, 'a'), outcome: 'unknown', granted: undefined, return: 30 };
    const orphan = [acquired(0, 'a'), late, released(50, 'a'), busy(70, 'b', { remaining: 990 })];
    expect(unexplained(...orphan)).toEqual([70]);
    expect(unexplained(acquired(0, 'a'), released(50, 'a'), acquired(60, 'a'))).toEqual([60]);
  });

  test('a release that is repeated and answers otherwise', () => {
    expect(unexplained(acquired(0, 'a'), released(50, 'a'), released(60, 'a'))).toEqual([]);
    expect(unexplained(acquired(0, 'a'), released(50, 'a'), released(60, 'a', false))).toEqual([60]);
  });

  test('a renewal that revived a lease that had ended', () => {
    const renewed = (ms: number, answer: boolean): Operation => at(ms, { op: 'renew', hold: 'a', fence: fenceAt(0), answer });
    expect(unexplained(acquired(0, 'a'), renewed(900, true), renewed(1_800, true))).toEqual([]);
    expect(unexplained(acquired(0, 'a'), renewed(1_020, true))).toEqual([1_020]);
    expect(unexplained(acquired(0, 'a'), renewed(900, false))).toEqual([900]);
  });

  test('a lease that is longer than anybody asked for', () => {
    expect(unexplained(acquired(0, 'a'), busy(500, 'b', { remaining: 501 }))).toEqual([]);
    expect(unexplained(acquired(0, 'a'), busy(500, 'b', { remaining: 900 }))).toEqual([500]);
    expect(unexplained(acquired(0, 'a'), busy(1_100, 'b', { remaining: 100 }))).toEqual([1_100]);
  });

  test('an entry into a lock by another owner, and one at another fence', () => {
    const join = (hold: string, owner: string, fence: number): Operation =>
      at(20, { op: 'join', hold, owner, fence, answer: true, store: OTHER });
    expect(unexplained(acquired(0, 'a'), join('t', 'owner of a', fenceAt(0)))).toEqual([]);
    expect(unexplained(acquired(0, 'a'), join('t', 'owner of b', fenceAt(0)))).toEqual([20]);
    expect(unexplained(acquired(0, 'a'), join('t', 'owner of a', fenceAt(5)))).toEqual([20]);
  });

  test('an exchange that overtakes the queue although its lock was gone', () => {
    const next = { owner: 'owner of n', hold: 'n', fences: 1, ttl: 1_000 };
    const exchange = (ms: number, answer: boolean): Operation =>
      at(ms, { op: 'exchange', hold: 'a', answer, next, overtakes: true, granted: fenceAt(ms), place: 'p' });
    const queued = [acquired(0, 'a'), busy(10, 'b')];
    expect(unexplained(...queued, exchange(50, true))).toEqual([]);
    expect(unexplained(...queued, exchange(1_050, false))).toEqual([1_050]);
  });

  test('a fence that another grant has used, or that no clock gave', () => {
    const grants = [acquired(0, 'a', { fences: 16 }), released(50, 'a')];
    expect(unexplained(...grants, acquired(60, 'b', { granted: fenceAt(0) + 16 }))).toEqual([]);
    expect(unexplained(...grants, acquired(60, 'b', { granted: fenceAt(0) + 15 }))).toEqual([60]);
    expect(
      unexplained(
        ...grants,
        acquired(60, 'b', { granted: fenceAt(5_000) }),
        released(70, 'b'),
        acquired(80, 'c', { granted: fenceAt(5_001) }),
      ),
    ).not.toEqual([]);
  });
});

test('what is found goes on from there, and what is given up is told', () => {
  const twice = [acquired(0, 'a'), acquired(10, 'b'), released(20, 'b'), acquired(200, 'c'), acquired(210, 'd')];
  const found = replayOf(...twice);
  expect(found.violations.map(({ from }) => from)).toEqual([10, 210]);
  expect(checkHistories({ replays: [found], table: 'one' }).violations[0]?.text).toMatch(
    /no run of the lock table on "k" explains that acquire b/,
  );
  const givenUp = { ...found, violations: [], givenUp: found.violations };
  expect(checkHistories({ replays: [givenUp], table: 'one' }).seen).toMatch(/2 given up because there were too many ways/);
});
