import { expect } from '@jest/globals';
import { follow, type Followed } from '../../console/page/app/connection/follow';
import type { Snapshot, SnapshotChanges, StoreAnswer } from '../../console/page/snapshot';
import { SurveySequence } from '../../console/page/survey-sequence';
import { Random, seedsOf } from '../support/random';
import { FleetOfLocks } from './support/fleet-of-locks';

/** How far the clock of a browser is ahead. */
const AHEAD_MS = 1_795_390_000_000;
/** The times of a row may be off by what is not sent again. */
const TOLERANCE_MS = 250;
const SURVEYS = 40;

function received<T extends Snapshot | SnapshotChanges>(message: T): T {
  return JSON.parse(JSON.stringify(message)) as T;
}

/** The knowledge of one browser, of a stream that loses messages. */
class Browser {
  known: Followed | undefined;

  hear(message: Snapshot | SnapshotChanges): void {
    this.known = follow(this.known, received(message), message.clock + AHEAD_MS);
  }
}

type Row = StoreAnswer['held'][number] | StoreAnswer['waiting'][number];

const TIMES = new Set(['heldMs', 'remainingMs', 'waitedMs', 'leftMs', 'since', 'until']);

/** Rows without their times, in an order that does not matter. */
function factsOf(rows: readonly object[]): string[] {
  return rows.map((row) => JSON.stringify(Object.entries(row).filter(([name]) => !TIMES.has(name)))).toSorted();
}

/** When rows began and end, as a survey says that was asked at that time. */
function timesIn(rows: readonly Row[], askedAt: number): Map<string, readonly [since: number, until: number | undefined]> {
  return new Map(
    rows.map((row) => {
      const [age, left] = 'heldMs' in row ? [row.heldMs, row.remainingMs] : [row.waitedMs, row.leftMs];
      return [nameOf(row), [askedAt - age + AHEAD_MS, left === undefined ? undefined : askedAt + left + AHEAD_MS]] as const;
    }),
  );
}

function nameOf(row: { readonly key: string; readonly process: string; readonly id?: string }): string {
  return `${row.id} ${row.process} ${row.key}`;
}

/**
 * An answer as it may also be: of processes that come and go, of a store that fails, or with rows that cannot be told
 * apart.
 */
function disturbed(answer: StoreAnswer, random: Random): StoreAnswer {
  if (random.chance(0.05)) {
    return { ...answer, failed: 'LOCK_STORE', held: [], waiting: [], processes: [] };
  }
  const away = random.chance(0.2) ? random.pick(answer.processes).id : undefined;
  const isThere = ({ process }: { readonly process: string }): boolean => process !== away;
  const [known, ...others] = answer.held.filter(isThere);
  const held = random.chance(0.2) ? others.toReversed() : others;
  const first = known && random.chance(0.3) ? { ...known, remainingMs: undefined } : known;
  return {
    ...answer,
    silent: away ? [away] : [],
    held: first ? [...held, first, ...(random.chance(0.2) ? [first] : [])] : [],
    waiting: answer.waiting.filter(isThere).map((call) => (random.chance(0.05) ? { ...call, holds: [{ key: 'other', fence: 7 }] } : call)),
  };
}

test.each(seedsOf(10))(
  'whoever follows the changes knows what a whole survey would say, whatever changes and whatever is lost (seed %i)',
  (seed) => {
    const random = new Random(seed);
    const fleets = ['default', 'other'].map((name) => new FleetOfLocks(random, name, { processes: 4, locks: 30, waiting: 10 }));
    const sequence = new SurveySequence();
    const [first, second] = [new Browser(), new Browser()];
    for (let survey = 1; survey <= SURVEYS; survey++) {
      const askedAt = survey * 2_300;
      fleets.forEach((fleet) => fleet.turnOver(random.whole(0, 5), random.whole(0, 3), askedAt));
      const answers = fleets.map((fleet) => disturbed(fleet.answer(askedAt), random));
      const step = sequence.next(answers, askedAt, askedAt + random.whole(0, 900));
      const whole = step.whole();
      const reference = new Browser();
      reference.hear(whole);
      for (const browser of survey < 10 ? [first] : [first, second]) {
        const isLost = browser.known !== undefined && random.chance(0.1);
        if (!isLost) {
          browser.hear(browser.known ? step.changes : whole);
          // One that has missed changes before knows nothing now, and has opened its stream again.
          expect(browser.known ?? reference.known).toEqual(reference.known);
        }
      }
      for (const [at, { held, waiting }] of (reference.known as Followed).stores.entries()) {
        const said = answers[at] as StoreAnswer;
        expect([factsOf(held), factsOf(waiting)]).toEqual([factsOf(said.held), factsOf(said.waiting)]);
        const times = new Map([...timesIn(said.held, askedAt), ...timesIn(said.waiting, askedAt)]);
        const off = [0];
        for (const row of [...held, ...waiting]) {
          const [since, until] = times.get(nameOf(row)) as readonly [number, number | undefined];
          off.push(Math.abs(row.since - since), Math.abs((row.until ?? 0) - (until ?? 0)));
        }
        expect(Math.max(...off)).toBeLessThanOrEqual(TOLERANCE_MS);
      }
    }
  },
);

test('rows that stay are not sent but by the ends of renewed leases, and stay the same objects', () => {
  const fleet = new FleetOfLocks(new Random(1), 'default', { processes: 5, locks: 200, waiting: 50 });
  const sequence = new SurveySequence();
  const browser = new Browser();
  browser.hear(sequence.next([fleet.answer(5_000)], 5_000, 5_300).whole());
  const waiting = browser.known?.stores[0]?.waiting ?? [];
  expect(waiting).toHaveLength(50);
  const { changes } = sequence.next([fleet.answer(15_000)], 15_000, 15_700);
  expect(changes.stores).toMatchObject([{ held: { gone: [], added: [] }, waiting: { gone: [], renewed: [], added: [] } }]);
  browser.hear(changes);
  expect(browser.known?.stores[0]?.waiting.every((row, at) => row === waiting[at])).toBe(true);
});

test('changes of a survey that never came are not applied', () => {
  const { changes } = new SurveySequence().next([], 0, 0);
  expect(follow(undefined, changes, 0)).toBeUndefined();
  expect(follow({ version: 7, aheadMs: 0, stores: [] }, changes, 0)).toBeUndefined();
});
