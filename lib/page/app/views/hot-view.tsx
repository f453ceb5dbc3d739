import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { ViewProps } from '../app.js';
import { span } from '../model/format.js';
import { hotNames, type HotName } from '../model/hot-names.js';
import { Empty } from '../parts/empty.js';
import { SortHeader, type Sorting } from '../parts/sort-header.js';

type Column = Exclude<keyof HotName, 'name'>;

const COLUMNS: readonly (readonly [Column, string])[] = [
  ['waitedMs', 'Time waited'],
  ['p95Ms', 'Wait p95'],
  ['acquired', 'Acquired'],
  ['refused', 'Gave up'],
  ['lost', 'Lost'],
  ['heldNow', 'Held now'],
  ['waitingNow', 'Waiting now'],
];

/** How many rows are shown at most: names are few where they are what they should be. */
const MOST_ROWS = 200;

/** The names by what they cost. */
export function HotView({ state, now }: ViewProps): VNode {
  const [sorting, setSorting] = useState<Sorting<Column>>({ column: 'waitedMs', isDown: true });
  const names = hotNames(state);
  const most = Math.max(1, ...names.map(({ waitedMs }) => waitedMs));
  const sign = sorting.isDown ? -1 : 1;
  const rows = names.toSorted((one, other) => sign * ((one[sorting.column] ?? 0) - (other[sorting.column] ?? 0)));
  const oldest = Math.min(now, ...state.stores.map(({ ended }) => ended.at(-1)?.endedAt ?? now));
  return (
    <>
      <div class="title">
        <h2>Hot names</h2>
        <p class="muted">
          Of the calls that ended in the last {span(now - oldest)}, as far as processes have recorded them, and of those that run.
        </p>
      </div>
      {rows.length === 0 ? (
        <Empty title="No call yet">Names appear as calls end. Only processes that import the page record their calls.</Empty>
      ) : (
        <div class="table-box" tabIndex={0} role="region" aria-label="Names">
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                {COLUMNS.map(([column, label]) => (
                  <SortHeader key={column} column={column} label={label} sorting={sorting} sort={setSorting} class="number" />
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.slice(0, MOST_ROWS).map((row) => (
                <HotRow key={row.name} row={row} most={most} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

function HotRow({ row, most }: { readonly row: HotName; readonly most: number }): VNode {
  return (
    <tr>
      <th scope="row" class="mono">
        {row.name}
      </th>
      <td class="number">
        <span class="share">
          <svg aria-hidden="true">
            <rect class="track" width="100%" height="100%" rx="2" />
            <rect class="fill" width={`${(row.waitedMs / most) * 100}%`} height="100%" rx="2" />
          </svg>
          <span>{span(row.waitedMs)}</span>
        </span>
      </td>
      <td class="number">{row.p95Ms === undefined ? '–' : span(row.p95Ms)}</td>
      <td class="number">{row.acquired.toLocaleString('en')}</td>
      <td class={row.refused > 0 ? 'number warn-text' : 'number faint'}>{row.refused}</td>
      <td class={row.lost > 0 ? 'number bad-text' : 'number faint'}>{row.lost}</td>
      <td class="number">{row.heldNow}</td>
      <td class="number">{row.waitingNow}</td>
    </tr>
  );
}
