import type { VNode } from 'preact';
import type { LockProcess } from '../../../core/peers/survey.js';
import type { ViewProps } from '../app.js';
import { span } from '../model/format.js';
import { storeFigures } from '../model/store-figures.js';
import type { StoreState } from '../model/state.js';
import { Pill, type Tone } from '../parts/pill.js';
import { Tiles } from '../parts/tiles.js';

const TONES: Readonly<Record<'up' | 'degraded' | 'down', Tone>> = { up: 'good', degraded: 'warn', down: 'bad' };

/** Which processes answer, and what they say of each store. */
export function ProcessesView({ state, now }: ViewProps): VNode {
  return (
    <>
      {state.stores.map((store) => (
        <section key={store.name}>
          <div class="section-head">
            <h2>
              Store <span class="mono">{store.name}</span>
            </h2>
          </div>
          <Tiles tiles={storeFigures(store)} />
          <div class="table-box" tabIndex={0} role="region" aria-label={`Processes of ${store.name}`}>
            <table>
              <thead>
                <tr>
                  <th scope="col">Process</th>
                  <th scope="col">Says of the store</th>
                  <th scope="col" class="number">
                    Latency
                  </th>
                  <th scope="col" class="number">
                    Held
                  </th>
                  <th scope="col" class="number">
                    Waiting
                  </th>
                  <th scope="col" class="wide number">
                    Least margin
                  </th>
                  <th scope="col" class="wide number">
                    Up for
                  </th>
                  <th scope="col" class="wide">
                    Version
                  </th>
                </tr>
              </thead>
              <tbody>
                {[...store.processes.values()]
                  .filter(({ id }) => !store.silent.includes(id))
                  .map((process) => (
                    <ProcessRow key={process.id} process={process} store={store} now={now} />
                  ))}
                {store.silent.map((id) => (
                  <SilentRow key={id} id={id} store={store} />
                ))}
              </tbody>
            </table>
          </div>
        </section>
      ))}
    </>
  );
}

function ProcessRow({ process, store, now }: { readonly process: LockProcess; readonly store: StoreState; readonly now: number }): VNode {
  const { id, host, pid, health, held, waiting, upMs, version } = process;
  return (
    <tr>
      <th scope="row">
        {host} <span class="muted">· {pid}</span>
        <span class="under mono">{id}</span>
      </th>
      <td>
        {health && <Pill tone={TONES[health.status]}>{[health.status, ...health.reasons].join(' · ')}</Pill>}
        {!health && <span class="muted">–</span>}
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
  const known = store.processes.get(id);
  return (
    <tr>
      <th scope="row">
        {known ? (
          <>
            {known.host} <span class="muted">· {known.pid}</span>
          </>
        ) : (
          'Unknown'
        )}
        <span class="under mono">{id}</span>
      </th>
      <td>
        <Pill tone="warn">does not answer</Pill>
      </td>
      <td class="muted" colSpan={3}>
        stopped, cut off, or of an older version
      </td>
      <td class="wide" colSpan={3} />
    </tr>
  );
}
