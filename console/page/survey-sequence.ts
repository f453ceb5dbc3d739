import type { HeldLock, WaitingCall } from '../../lib/operate/peers/survey.js';
import { RowTable, type RowKind } from './row-table.js';
import type { Snapshot, SnapshotChanges, StoreAnswer, StoreChanges, StoreSnapshot } from './snapshot.js';

const HELD: RowKind<HeldLock> = {
  identityOf: ({ key, process }) => `${key} ${process}`,
  age: 'heldMs',
  left: 'remainingMs',
};
const WAITING: RowKind<WaitingCall> = {
  identityOf: ({ id, process }) => `${id} ${process}`,
  age: 'waitedMs',
  left: 'leftMs',
};

/** One survey of a sequence, as viewers are told it. */
export interface SequenceStep {
  /** For who has seen none before. Has to be asked for before the next step is taken. */
  whole(): Snapshot;
  /** For who has seen the step before. */
  readonly changes: SnapshotChanges;
}

/**
 * Surveys one after the other, each whole and as the changes since the one before. For 10,000 locks with leases of 10 s
 * a survey has 2.1 MB, or 260 kB where each stream spends 14 ms to compress it; the changes have 75 kB, and the browser
 * takes in no more than that.
 */
export class SurveySequence {
  #version = 0;
  #tables = new Map<string, { readonly held: RowTable<HeldLock>; readonly waiting: RowTable<WaitingCall> }>();
  /** The ended calls and the incidents of the step before. */
  #told: ReadonlySet<string> = new Set();

  /**
   * Takes the answers of stores that were asked at `askedAt`, and tells them at `clock`: by one clock, in whole
   * milliseconds.
   */
  next(answers: readonly StoreAnswer[], askedAt: number, clock: number): SequenceStep {
    const version = ++this.#version;
    const told = this.#told;
    this.#told = new Set(answers.flatMap(({ ended, incidents }) => [...ended, ...incidents].map(nameOf)));
    const stores = answers.map((answer) => this.#changesOf(answer, askedAt, clock, told));
    return {
      whole: () => ({ kind: 'survey', version, clock, stores: answers.map((answer) => this.#wholeOf(answer)) }),
      changes: { kind: 'changes', version, clock, stores },
    };
  }

  #changesOf(answer: StoreAnswer, askedAt: number, clock: number, told: ReadonlySet<string>): StoreChanges {
    const { held, waiting } = this.#tablesOf(answer);
    const isNew = (row: Told): boolean => !told.has(nameOf(row));
    return {
      ...answer,
      held: held.take(answer.held, askedAt, clock),
      waiting: waiting.take(answer.waiting, askedAt, clock),
      ended: answer.ended.filter(isNew),
      incidents: answer.incidents.filter(isNew),
    };
  }

  #wholeOf(answer: StoreAnswer): StoreSnapshot {
    const { held, waiting } = this.#tablesOf(answer);
    return { ...answer, held: held.rows(), waiting: waiting.rows() };
  }

  #tablesOf({ store }: StoreAnswer): { readonly held: RowTable<HeldLock>; readonly waiting: RowTable<WaitingCall> } {
    const tables = this.#tables.get(store) ?? { held: new RowTable(HELD), waiting: new RowTable(WAITING) };
    this.#tables.set(store, tables);
    return tables;
  }
}

interface Told {
  readonly id: string;
  readonly count?: number;
}

/** An incident that happened again is told again. */
function nameOf({ id, count = 1 }: Told): string {
  return `${id} ${count}`;
}
