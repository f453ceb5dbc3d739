import type { VNode } from 'preact';
import { printable, sharing } from '../../../../lib/core/words/shown.js';
import { span } from '../model/format.js';
import type { LockRow } from '../model/lock-rows.js';
import { processName } from '../model/processes.js';
import { waitsForStore } from '../model/waits-for-store.js';
import { linkToKey } from '../route.js';
import { LeaseBar } from './lease-bar.js';
import { Pill } from './pill.js';
import { Site } from './site.js';

interface LockTableRowProps {
  readonly row: LockRow;
  readonly now: number;
  /** Whether the store is worth its name. */
  readonly isNamed: boolean;
  readonly askRelease: ((row: LockRow) => void) | undefined;
}

/** A lock as a row of the table. */
export function LockTableRow({ row, now, isNamed, askRelease }: LockTableRowProps): VNode {
  const { store, key, name, fence, since, until, shares, count } = row;
  const wholeMs = store.leases.get(name) ?? Math.max(0, (until ?? 0) - store.at);
  return (
    <tr>
      <th scope="row">
        <a class="key mono" href={linkToKey(store.name, key)}>
          {printable(key)}
        </a>
        <span class="under">
          {isNamed && <span class="tag">{store.name}</span>}
          {shares && <span class="tag">{sharing(shares, count)}</span>}
          {name}
        </span>
        <span class="under narrow">
          <Holder row={row} now={now} />
        </span>
      </th>
      <td class="wide call">
        <Holder row={row} now={now} />
      </td>
      <td class="number">{since === undefined ? '–' : span(now - since)}</td>
      <td class="lease-cell">{fence === undefined ? '–' : <LeaseBar leftMs={until && until - now} wholeMs={wholeMs} />}</td>
      <td>
        <Queue row={row} now={now} />
      </td>
      <td class="wide number mono muted">{fence ?? '–'}</td>
      {askRelease && (
        <td class="action">
          {fence !== undefined && (
            <button type="button" class="quiet" onClick={() => askRelease(row)} aria-label={`Release ${printable(key)} by force`}>
              Release
            </button>
          )}
        </td>
      )}
    </tr>
  );
}

function Holder({ row: { store, holders, foundBy, fence, answers, until, waiting }, now }: Pick<LockTableRowProps, 'row' | 'now'>): VNode {
  const [holder] = holders;
  const leftMs = until === undefined ? undefined : until - now;
  return (
    <>
      <Site call={holder ?? { site: foundBy ?? 'Holder unknown' }} />
      <span class="under">
        {holder && processName(store, holder.process)}
        {holders.length > 1 && ` and ${holders.length - 1} more`}
        {!answers && (
          <Pill tone="warn">
            {fence === undefined
              ? waiting.every((call) => waitsForStore(store, call))
                ? 'its calls wait for the store'
                : 'nobody says that it holds it'
              : `does not answer${leftMs === undefined ? '' : leftMs > 0 ? `, free in ${span(leftMs)}` : ', lease over'}`}
          </Pill>
        )}
      </span>
    </>
  );
}

function Queue({ row: { waiting }, now }: Pick<LockTableRowProps, 'row' | 'now'>): VNode {
  const [first] = waiting;
  return first ? (
    <span class="queue">
      <strong>{waiting.length}</strong>
      <span class="under">{span(now - first.since)}</span>
    </span>
  ) : (
    <span class="muted">–</span>
  );
}
