import type { VNode } from 'preact';
import type { LockProcess } from '../../../../lib/operate/peers/survey.js';
import { printable } from '../../../../lib/core/words/shown.js';
import type { ViewProps } from '../app.js';
import { span } from '../model/format.js';
import { known } from '../model/known-word.js';
import { processName } from '../model/processes.js';
import { storeFigures } from '../model/store-figures.js';
import type { StoreState } from '../model/state.js';
import { DataTable } from '../parts/data-table.js';
import { Pill, type Tone } from '../parts/pill.js';
import { Section } from '../parts/section.js';
import { Tiles } from '../parts/tiles.js';

const HEADS = [
  ['Process'],
  ['Says of the store'],
  ['Latency', 'number'],
  ['Held', 'number'],
  ['Waiting', 'number'],
  ['Least margin', 'wide number'],
  ['Up for', 'wide number'],
  ['Version', 'wide'],
] as const;

const TONES: Readonly<Record<'up' | 'degraded' | 'down', Tone>> = { up: 'good', degraded: 'warn', down: 'bad' };

/** Which processes answer, and what they say of each store. */
export function ProcessesView({ state, now }: ViewProps): VNode {
  return (
    <>
      {state.stores.map((store) => (
        <Section
          key={store.name}
          title={
            <>
              Store <span class="mono">{store.name}</span>
            </>
          }
        >
          <Tiles tiles={storeFigures(store)} />
          <DataTable label={`Processes of ${store.name}`} heads={HEADS}>
            {[...store.processes.values()]
              .filter(({ id }) => !store.silent.includes(id))
              .map((process) => (
                <ProcessRow key={process.id} process={process} store={store} now={now} />
              ))}
            {store.silent.map((id) => (
              <SilentRow key={id} id={id} store={store} />
            ))}
          </DataTable>
        </Section>
      ))}
    </>
  );
}

function ProcessRow({ process, store, now }: { readonly process: LockProcess; readonly store: StoreState; readonly now: number }): VNode {
  const { id, health, held, waiting, upMs, version } = process;
  return (
    <tr>
      <ProcessHead store={store} id={id} />
      <td>
        {health && <Pill tone={known(TONES, health.status) ?? 'warn'}>{printable([health.status, ...health.reasons].join(' · '))}</Pill>}
      </td>
      <td class="number">{health?.latencyMs === undefined ? '–' : `${health.latencyMs.toFixed(1)} ms`}</td>
      <td class="number">{held}</td>
      <td class="number">{waiting}</td>
      <td class="wide number">{health?.leastMarginMs === undefined ? '–' : span(health.leastMarginMs)}</td>
      <td class="wide number">{span(upMs + Math.max(0, now - store.at))}</td>
      <td class="wide mono">{version}</td>
    </tr>
  );
}

function SilentRow({ id, store }: { readonly id: string; readonly store: StoreState }): VNode {
  return (
    <tr>
      <ProcessHead store={store} id={id} />
      <td>
        <Pill tone="warn">does not answer</Pill>
      </td>
      <td class="muted" colSpan={6}>
        stopped, cut off, or of another version
      </td>
    </tr>
  );
}

function ProcessHead({ store, id }: { readonly store: StoreState; readonly id: string }): VNode {
  return (
    <th scope="row" title={id}>
      {processName(store, id)}
    </th>
  );
}
