import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { ViewProps } from '../app.js';
import { span } from '../model/format.js';
import { hotNames, type HotName } from '../model/hot-names.js';
import { DataTable, type Head } from '../parts/data-table.js';
import { Empty } from '../parts/empty.js';
import type { Sorting } from '../parts/sort-header.js';

type Column = Exclude<keyof HotName, 'name'>;

const HEADS: readonly Head<Column>[] = [
  ['Name'],
  ['Time waited', 'number', 'waitedMs'],
  ['Wait p95', 'number', 'p95Ms'],
  ['Acquired', 'wide number', 'acquired'],
  ['Gave up', 'number', 'refused'],
  ['Lost', 'number', 'lost'],
  ['Held now', 'wide number', 'heldNow'],
  ['Waiting now', 'wide number', 'waitingNow'],
];

/** How many rows are shown at most: names are few where they are what they should be. */
const MOST_ROWS = 200;

/** The names by what they cost. */
export function HotView({ state, now }: ViewProps): VNode {
  const [sorting, setSorting] = useState<Sorting<Column>>({ column: 'waitedMs', isDown: true });
  const names = hotNames(state, now);
  const most = Math.max(1, ...names.map(({ waitedMs }) => waitedMs));
  const sign = sorting.isDown ? -1 : 1;
  const rows = names.toSorted((one, other) => sign * ((one[sorting.column] ?? 0) - (other[sorting.column] ?? 0)));
  const oldest = Math.min(now, ...state.stores.map(({ ended }) => ended.at(-1)?.endedAt ?? now));
  return (
    <>
      <div class="title">
        <h2>Hot names</h2>
        <p class="muted">Of the calls that ended in the last {span(now - oldest)}, and of those that run.</p>
      </div>
      {rows.length === 0 ? (
        <Empty title="No call yet">Processes that import the page record.</Empty>
      ) : (
        <DataTable label="Names" heads={HEADS} sorting={sorting} sort={setSorting}>
          {rows.slice(0, MOST_ROWS).map((row) => (
            <HotRow key={row.name} row={row} most={most} />
          ))}
        </DataTable>
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
      <td class="wide number">{row.acquired.toLocaleString('en')}</td>
      <td class={row.refused > 0 ? 'number warn-text' : 'number muted'}>{row.refused}</td>
      <td class={row.lost > 0 ? 'number bad-text' : 'number muted'}>{row.lost}</td>
      <td class="wide number">{row.heldNow}</td>
      <td class="wide number">{row.waitingNow}</td>
    </tr>
  );
}
