import type { VNode } from 'preact';
import { counted, span } from '../model/format.js';
import { processName } from '../model/processes.js';
import type { StoreState, Waiting } from '../model/state.js';

const MOST_ROWS = 100;

interface WaitingTableProps {
  readonly store: StoreState;
  readonly calls: readonly Waiting[];
  readonly now: number;
}

/** The calls that wait for a key. */
export function WaitingTable({ store, calls, now }: WaitingTableProps): VNode {
  return (
    <section>
      <div class="section-head">
        <h3>Waiting calls</h3>
        <span class="muted">{calls.length > MOST_ROWS ? `the first ${MOST_ROWS} of ${calls.length}` : calls.length}</span>
      </div>
      {calls.length === 0 ? (
        <p class="muted nothing">No call waits for this key.</p>
      ) : (
        <div class="table-box" tabIndex={0} role="region" aria-label="Waiting calls">
          <table>
            <thead>
              <tr>
                <th scope="col">Call</th>
                <th scope="col">Process</th>
                <th scope="col" class="number">
                  Waits
                </th>
                <th scope="col" class="number">
                  Gives up in
                </th>
                <th scope="col" class="wide">
                  Holds meanwhile
                </th>
              </tr>
            </thead>
            <tbody>
              {calls.slice(0, MOST_ROWS).map((call) => (
                <tr key={call.id}>
                  <th scope="row" class="place">
                    {call.place}
                  </th>
                  <td>{processName(store, call.process)}</td>
                  <td class="number">{span(now - call.since)}</td>
                  <td class="number">{span(call.until - now)}</td>
                  <td class="wide mono faint">{call.holds.map(({ key }) => key).join(', ') || '–'}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {calls.length > MOST_ROWS && <p class="muted foot">{counted(calls.length - MOST_ROWS, 'more call')}</p>}
        </div>
      )}
    </section>
  );
}
