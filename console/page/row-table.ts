import type { RowChanges, Timed } from './snapshot.js';

/** Processes answer a little later or earlier each time: times that differ by less are the same, in milliseconds. */
const TOLERANCE_MS = 250;

/** The identity of rows, and which of their fields are ages. */
export interface RowKind<Row> {
  identityOf(row: Row): string;
  readonly age: keyof Row;
  readonly left: keyof Row;
}

interface Entry<Row> {
  readonly row: Row;
  readonly since: number;
  until: number | undefined;
  /** The number of the survey that had it last, and of the one that renewed it. */
  seenIn: number;
  renewedIn: number;
}

/** The rows of one list, from survey to survey. Those that stay are where they were, and new ones are at the end. */
export class RowTable<Row extends object> {
  readonly #kind: RowKind<Row>;
  readonly #entries = new Map<string, Entry<Row>>();
  #survey = 0;

  constructor(kind: RowKind<Row>) {
    this.#kind = kind;
  }

  rows(): Timed<Row>[] {
    return Array.from(this.#entries.values(), (entry) => this.#timed(entry));
  }

  /** Takes the rows as they were at `askedAt`, and says at `clock` what has changed. */
  take(rows: readonly Row[], askedAt: number, clock: number): RowChanges<Row> {
    this.#survey++;
    const fresh = new Map<string, Entry<Row>>();
    for (const row of rows) {
      this.#see(row, askedAt, fresh);
    }
    const changes = this.#settle(clock);
    for (const [identity, entry] of fresh) {
      this.#entries.set(identity, entry);
    }
    return { ...changes, added: Array.from(fresh.values(), (entry) => this.#timed(entry)) };
  }

  /**
   * Finds a row again, or else puts it with the new ones. Rows that cannot be told apart are told apart by their
   * number.
   */
  #see(row: Row, askedAt: number, fresh: Map<string, Entry<Row>>): void {
    const since = askedAt - (row[this.#kind.age] as number);
    const left = row[this.#kind.left] as number | undefined;
    const until = left === undefined ? undefined : askedAt + left;
    let identity = this.#kind.identityOf(row);
    let known = this.#entries.get(identity);
    while (known?.seenIn === this.#survey || fresh.has(identity)) {
      identity += '+';
      known = this.#entries.get(identity);
    }
    if (!known || Math.abs(known.since - since) > TOLERANCE_MS || typeof known.until !== typeof until || !this.#isSame(known.row, row)) {
      fresh.set(identity, { row, since, until, seenIn: this.#survey, renewedIn: 0 });
      return;
    }
    known.seenIn = this.#survey;
    if (until !== undefined && Math.abs((known.until as number) - until) > TOLERANCE_MS) {
      known.until = until;
      known.renewedIn = this.#survey;
    }
  }

  /** Takes out the rows that were not seen. */
  #settle(clock: number): Pick<RowChanges<Row>, 'gone' | 'renewed'> {
    const gone: number[] = [];
    const renewed: number[] = [];
    let at = 0;
    let stayed = 0;
    let last = -1;
    for (const [identity, { seenIn, renewedIn, until }] of this.#entries) {
      if (seenIn === this.#survey) {
        if (renewedIn === this.#survey) {
          renewed.push(stayed - last, (until as number) - clock);
          last = stayed;
        }
        stayed++;
      } else {
        gone.push(at);
        this.#entries.delete(identity);
      }
      at++;
    }
    return { gone, renewed };
  }

  /** Whether two rows are the same but for their ages. */
  #isSame(one: Row, other: Row): boolean {
    const { age, left } = this.#kind;
    let fields = 0;
    for (const name in other) {
      fields++;
      if (name !== age && name !== left && one[name] !== other[name] && !areAlike(one[name], other[name])) {
        return false;
      }
    }
    return fields === Object.keys(one).length;
  }

  #timed({ row, since, until }: Entry<Row>): Timed<Row> {
    return { ...row, [this.#kind.age]: undefined, [this.#kind.left]: undefined, since, until } as unknown as Timed<Row>;
  }
}

function areAlike(one: unknown, other: unknown): boolean {
  return typeof one === 'object' && JSON.stringify(one) === JSON.stringify(other);
}
