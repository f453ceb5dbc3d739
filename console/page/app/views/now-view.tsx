import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { ViewProps } from '../app.js';
import { counted, span } from '../model/format.js';
import { FRESH_MS } from '../model/incidents.js';
import { lockRows, type LockRow } from '../model/lock-rows.js';
import { sortRows, type LockColumn } from '../model/sort-rows.js';
import type { State } from '../model/state.js';
import { DataTable, type Head } from '../parts/data-table.js';
import { Empty } from '../parts/empty.js';
import { LockTableRow } from '../parts/lock-table-row.js';
import { Nothing } from '../parts/nothing.js';
import { Pager } from '../parts/pager.js';
import { SearchPanel } from '../parts/search-panel.js';
import type { Sorting } from '../parts/sort-header.js';
import { Tiles } from '../parts/tiles.js';
import { linkTo } from '../route.js';

const PAGE_SIZE = 100;

const HEADS: readonly Head<LockColumn>[] = [
  ['Key', '', 'key'],
  ['Holder', 'wide'],
  ['Held', 'number', 'age'],
  ['Lease left', 'lease-cell', 'lease'],
  ['Waiting', '', 'waiting'],
  ['Fence', 'wide number'],
];

/** Who holds what, and who waits for it. */
export function NowView({ state, now, change, askRelease }: ViewProps): VNode {
  const [filter, setFilter] = useState('');
  const [sorting, setSorting] = useState<Sorting<LockColumn>>({ column: 'waiting', isDown: true });
  const [isWaitedFor, setIsWaitedFor] = useState(false);
  const [page, setPage] = useState(0);
  const all = state.stores.flatMap((store) => lockRows(store, now));
  const rows = sortRows(
    all.filter(matching(filter)).filter(({ waiting }) => !isWaitedFor || waiting.length > 0),
    sorting,
  );
  const shownPage = Math.min(page, Math.max(0, Math.ceil(rows.length / PAGE_SIZE) - 1));
  const isNamed = state.stores.length > 1;
  return (
    <>
      <Summary state={state} rows={all} now={now} />
      <div class="toolbar">
        <label class="filter">
          <span class="hidden">Filter by key, name or holder</span>
          <input
            type="search"
            placeholder="Filter by key, name or holder"
            value={filter}
            onInput={({ currentTarget }) => {
              setFilter(currentTarget.value);
              setPage(0);
            }}
          />
        </label>
        <button
          type="button"
          aria-pressed={isWaitedFor}
          class={isWaitedFor ? 'pressed' : ''}
          onClick={() => {
            setIsWaitedFor(!isWaitedFor);
            setPage(0);
          }}
        >
          Waited for
        </button>
        {filter !== '' && <span class="muted">{counted(rows.length, 'match', 'matches')}</span>}
        <div class="searches">
          {state.stores.map((store) => (
            <SearchPanel key={store.name} store={store} isNamed={isNamed} change={change} />
          ))}
        </div>
      </div>
      {rows.length === 0 ? (
        <NoRows state={state} isFiltered={all.length > 0} />
      ) : (
        <DataTable label="Locks" heads={askRelease ? [...HEADS, ['Action', 'action']] : HEADS} sorting={sorting} sort={setSorting}>
          {rows.slice(shownPage * PAGE_SIZE, (shownPage + 1) * PAGE_SIZE).map((row) => (
            <LockTableRow key={`${row.store.name} ${row.fence} ${row.key}`} row={row} now={now} isNamed={isNamed} askRelease={askRelease} />
          ))}
        </DataTable>
      )}
      <Pager page={shownPage} size={PAGE_SIZE} count={rows.length} turn={setPage} />
      <LeftOut state={state} />
    </>
  );
}

function matching(filter: string): (row: LockRow) => boolean {
  const wanted = filter.trim().toLowerCase();
  const has = (text: string | undefined): boolean => text?.toLowerCase().includes(wanted) === true;
  return ({ key, name, foundBy, holders, store }) =>
    wanted === '' ||
    [key, name, foundBy].some(has) ||
    holders.some(({ site, description, process }) => has(site) || has(description) || has(store.processes.get(process)?.host));
}

function Summary({ state, rows, now }: { readonly state: State; readonly rows: readonly LockRow[]; readonly now: number }): VNode {
  const waiting = state.stores.flatMap((store) => store.waiting);
  const longest = waiting.reduce((most, { since }) => Math.max(most, now - since), 0);
  const lost = state.stores.flatMap(({ incidents }) => incidents.filter(({ type, at }) => type === 'lost' && at > now - FRESH_MS)).length;
  const silent = state.stores.reduce((sum, store) => sum + store.silent.length, 0);
  const processes = state.stores.reduce((sum, store) => sum + store.processes.size, 0);
  const isHeard = state.stores.every((store) => store.isHeard);
  const known = (count: number): string => (isHeard || count > 0 ? count.toLocaleString('en') : '–');
  const unanswered = rows.filter((row) => row.fence !== undefined && !row.answers).length;
  return (
    <Tiles
      tiles={[
        {
          label: 'Held',
          value: known(rows.filter(({ fence }) => fence !== undefined).length),
          note: unanswered > 0 ? `${unanswered} unanswered` : undefined,
        },
        { label: 'Waiting', value: known(waiting.length), link: linkTo('waits') },
        { label: 'Longest wait', value: waiting.length > 0 ? span(longest) : '–', tone: longest > 10_000 ? 'warn' : undefined },
        { label: 'Lost in 1 h', value: String(lost), tone: lost > 0 ? 'bad' : undefined, link: linkTo('incidents') },
        {
          label: 'Processes',
          value: processes.toLocaleString('en'),
          note: silent > 0 ? `${silent} silent` : undefined,
          tone: silent > 0 ? 'warn' : undefined,
          link: linkTo('processes'),
        },
      ]}
    />
  );
}

function NoRows({ state, isFiltered }: { readonly state: State; readonly isFiltered: boolean }): VNode {
  return isFiltered ? (
    <Empty title="No lock matches">Clear the filter.</Empty>
  ) : (
    <Nothing state={state} title="Nothing is locked">
      Locks appear here as they are taken.
    </Nothing>
  );
}

function LeftOut({ state }: { readonly state: State }): VNode | null {
  const leftOut = state.stores.reduce((sum, store) => sum + store.leftOut, 0);
  return leftOut > 0 ? (
    <p class="muted foot">{counted(leftOut, 'lock or call', 'locks and calls')} more: each process lists its first 1,000 of both.</p>
  ) : null;
}
