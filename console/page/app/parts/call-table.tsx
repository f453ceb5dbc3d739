import type { VNode } from 'preact';
import { printable } from '../../../../lib/core/words/shown.js';
import { span, timeOfDay } from '../model/format.js';
import { gaveUp, hadLock } from '../model/hot-names.js';
import { known } from '../model/known-word.js';
import { processName } from '../model/processes.js';
import type { Ended, StoreState } from '../model/state.js';
import { DataTable } from './data-table.js';
import { Pill, type Tone } from './pill.js';
import { Section } from './section.js';
import { Site } from './site.js';

const MOST_ROWS = 50;

const HEADS = [
  ['Ended'],
  ['Outcome'],
  ['Call'],
  ['Process', 'wide'],
  ['Waited', 'number'],
  ['Held', 'number'],
  ['Fence', 'wide number'],
] as const;

const OUTCOMES: Readonly<Record<'released' | 'lost' | 'refused', readonly [Tone, string]>> = {
  released: ['good', 'released'],
  lost: ['bad', 'lost'],
  refused: ['warn', 'gave up'],
};

/** The calls for a key that ended last. */
export function CallTable({ store, lockKey }: { readonly store: StoreState; readonly lockKey: string }): VNode {
  const calls = store.ended.filter(({ key }) => key === lockKey);
  return (
    <Section
      title="Ended calls"
      note={<span class="muted">{calls.length > MOST_ROWS ? `the last ${MOST_ROWS} of ${calls.length}` : calls.length}</span>}
    >
      {calls.length === 0 ? (
        <p class="muted">Processes that import the page record.</p>
      ) : (
        <DataTable label="Ended calls" heads={HEADS}>
          {calls.slice(0, MOST_ROWS).map((call) => (
            <CallRow key={call.id} store={store} call={call} />
          ))}
        </DataTable>
      )}
    </Section>
  );
}

function CallRow({ store, call }: { readonly store: StoreState; readonly call: Ended }): VNode {
  const isAborted = call.outcome === 'refused' && !gaveUp(call);
  const [tone, word] = isAborted ? (['plain', ''] as const) : (known(OUTCOMES, call.outcome) ?? (['plain', call.outcome] as const));
  return (
    <tr>
      <td class="mono">{timeOfDay(call.endedAt)}</td>
      <td>
        <Pill tone={tone}>{printable([word, call.reason].filter(Boolean).join(': '))}</Pill>
      </td>
      <td class="call">
        <Site call={call} />
      </td>
      <td class="wide process">{processName(store, call.process)}</td>
      <td class="number">{span(call.waitedMs)}</td>
      <td class="number">{hadLock(call) ? span(call.heldMs) : '–'}</td>
      <td class="wide number mono muted">{call.fence ?? '–'}</td>
    </tr>
  );
}
