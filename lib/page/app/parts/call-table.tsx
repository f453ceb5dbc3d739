import type { VNode } from 'preact';
import { span, timeOfDay } from '../model/format.js';
import { processName } from '../model/processes.js';
import type { Ended, StoreState } from '../model/state.js';
import { Pill, type Tone } from './pill.js';

const MOST_ROWS = 50;

const OUTCOMES: Readonly<Record<Ended['outcome'], readonly [Tone, string]>> = {
  released: ['good', 'released'],
  lost: ['bad', 'lost'],
  refused: ['warn', 'gave up'],
};

/** The calls for a key that ended last. */
export function CallTable({ store, lockKey }: { readonly store: StoreState; readonly lockKey: string }): VNode {
  const calls = store.ended.filter(({ key }) => key === lockKey);
  return (
    <section>
      <div class="section-head">
        <h3>Ended calls</h3>
        <span class="muted">{calls.length > MOST_ROWS ? `the last ${MOST_ROWS} of ${calls.length}` : calls.length}</span>
      </div>
      {calls.length === 0 ? (
        <p class="muted nothing">None since the processes began to record. Processes that import the page record.</p>
      ) : (
        <div class="table-box" tabIndex={0} role="region" aria-label="Ended calls">
          <table>
            <thead>
              <tr>
                <th scope="col">Ended</th>
                <th scope="col">Outcome</th>
                <th scope="col">Call</th>
                <th scope="col" class="wide">
                  Process
                </th>
                <th scope="col" class="number">
                  Waited
                </th>
                <th scope="col" class="number">
                  Held
                </th>
                <th scope="col" class="wide number">
                  Fence
                </th>
              </tr>
            </thead>
            <tbody>
              {calls.slice(0, MOST_ROWS).map((call) => (
                <CallRow key={call.id} store={store} call={call} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function CallRow({ store, call }: { readonly store: StoreState; readonly call: Ended }): VNode {
  const [tone, word] = OUTCOMES[call.outcome];
  return (
    <tr>
      <td class="mono">{timeOfDay(call.endedAt)}</td>
      <td>
        <Pill tone={tone}>
          {word}
          {call.reason ? `: ${call.reason}` : ''}
        </Pill>
      </td>
      <td class="place">{call.place}</td>
      <td class="wide">{processName(store, call.process)}</td>
      <td class="number">{span(call.waitedMs)}</td>
      <td class="number">{call.outcome === 'refused' ? '–' : span(call.heldMs)}</td>
      <td class="wide number mono faint">{call.fence ?? '–'}</td>
    </tr>
  );
}
