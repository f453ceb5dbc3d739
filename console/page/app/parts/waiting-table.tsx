import type { VNode } from 'preact';
import { printable } from '../../../../lib/core/words/shown.js';
import { span } from '../model/format.js';
import { processName } from '../model/processes.js';
import type { StoreState, Waiting } from '../model/state.js';
import { waitsForStore } from '../model/waits-for-store.js';
import { DataTable } from './data-table.js';
import { Pill } from './pill.js';
import { Section } from './section.js';
import { Site } from './site.js';

const MOST_ROWS = 100;

const HEADS = [['Call'], ['Process'], ['Waits', 'number'], ['Gives up in', 'number'], ['Holds meanwhile', 'wide']] as const;

interface WaitingTableProps {
  readonly store: StoreState;
  readonly calls: readonly Waiting[];
  readonly now: number;
}

/** The calls that wait for a key. */
export function WaitingTable({ store, calls, now }: WaitingTableProps): VNode {
  return (
    <Section
      title="Waiting calls"
      note={<span class="muted">{calls.length > MOST_ROWS ? `the first ${MOST_ROWS} of ${calls.length}` : calls.length}</span>}
    >
      {calls.length === 0 ? (
        <p class="muted">No call waits for this key.</p>
      ) : (
        <DataTable label="Waiting calls" heads={HEADS}>
          {calls.slice(0, MOST_ROWS).map((call) => (
            <tr key={call.id}>
              <th scope="row" class="call">
                <Site call={call} />
                {waitsForStore(store, call) && <Pill tone="warn">waits for the store</Pill>}
              </th>
              <td class="process">{processName(store, call.process)}</td>
              <td class="number">{span(now - call.since)}</td>
              <td class="number">{span(call.until - now)}</td>
              <td class="wide mono muted process">{call.holds.map(({ key }) => printable(key)).join(', ') || '–'}</td>
            </tr>
          ))}
        </DataTable>
      )}
    </Section>
  );
}
