import type { RowChanges, Snapshot, SnapshotChanges, StoreSnapshot, Timed } from '../../snapshot.js';

/** A survey whose times are those of this browser, in milliseconds. */
export interface Followed {
  readonly version: number;
  /** How far the clock of this browser is ahead of that of the rows, as the whole survey said. */
  readonly aheadMs: number;
  readonly stores: readonly StoreSnapshot[];
}

/** The survey after a message that came at `at`; undefined for changes of a survey that has not come. */
export function follow(last: Followed | undefined, message: Snapshot | SnapshotChanges, at: number): Followed | undefined {
  const { version, clock, stores } = message;
  const before = message.kind === 'survey' ? { aheadMs: at - clock, stores: [] } : last?.version === version - 1 ? last : undefined;
  return (
    before && {
      version,
      aheadMs: before.aheadMs,
      stores: stores.map((store, index) => ({
        ...store,
        held: changed(before.stores[index]?.held, store.held, before.aheadMs, clock),
        waiting: changed(before.stores[index]?.waiting, store.waiting, before.aheadMs, clock),
      })),
    }
  );
}

/** A row that stays as it was stays the same object. */
function changed<Row>(
  before: readonly Timed<Row>[] = [],
  changes: RowChanges<Row> | readonly Timed<Row>[],
  aheadMs: number,
  clock: number,
): Timed<Row>[] {
  const { gone, renewed, added } = 'added' in changes ? changes : { gone: [], renewed: [], added: changes };
  const places = new Set(gone);
  const rows = before.filter((_, place) => !places.has(place));
  for (let at = 0, place = -1; at < renewed.length; at += 2) {
    place += renewed[at] as number;
    rows[place] = { ...rows[place], until: clock + aheadMs + (renewed[at + 1] as number) } as Timed<Row>;
  }
  for (const row of added) {
    rows.push({ ...row, since: row.since + aheadMs, until: row.until && row.until + aheadMs } as Timed<Row>);
  }
  return rows;
}
