import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { printable } from '../../../../lib/core/words/shown.js';
import type { ViewProps } from '../app.js';
import { useInspected } from '../connection/inspect.js';
import { quantile, span } from '../model/format.js';
import { incidentsOf } from '../model/incidents.js';
import { freedRow, lockRows } from '../model/lock-rows.js';
import type { StoreState } from '../model/state.js';
import { timeline } from '../model/timeline.js';
import { CallTable } from '../parts/call-table.js';
import { Empty } from '../parts/empty.js';
import { Gantt } from '../parts/gantt.js';
import { IncidentTable } from '../parts/incident-table.js';
import { LockFacts } from '../parts/lock-facts.js';
import { Nothing } from '../parts/nothing.js';
import { Section } from '../parts/section.js';
import { Tiles } from '../parts/tiles.js';
import { WaitingTable } from '../parts/waiting-table.js';
import { linkTo } from '../route.js';

/** How many incidents of a key are shown. */
const MOST_INCIDENTS = 20;

const WINDOWS = [1, 5, 15] as const;

/** The history of one key in the last minutes. */
export function KeyView({
  state,
  now,
  askRelease,
  store: name,
  lockKey,
}: ViewProps & { readonly store: string; readonly lockKey: string }): VNode {
  const [minutes, setMinutes] = useState<(typeof WINDOWS)[number]>(1);
  const inspected = useInspected(name, lockKey, state.connection !== 'paused' && state.info?.hideKeys === false);
  const store = state.stores.find((each) => each.name === name);
  if (!store) {
    return <Empty title={`There is no store “${name}”`}>It may be of another application.</Empty>;
  }
  const said = lockRows(store, now).find(({ key }) => key === lockKey);
  const row = said && inspected?.lock === null ? freedRow(said, inspected.at) : said;
  const from = now - minutes * 60_000;
  const incidents = incidentsOf(store, lockKey);
  const lanes = timeline(store, lockKey, from, now);
  return (
    <>
      <div class="title">
        <p class="crumb">
          <a href={linkTo('now')}>Now</a> <span aria-hidden="true">/</span> {name}
        </p>
        <div class="title-row">
          <h2 class="mono">{printable(lockKey)}</h2>
          {askRelease && row?.fence !== undefined && (
            <button type="button" class="danger quiet" onClick={() => askRelease(row)}>
              Release by force …
            </button>
          )}
        </div>
      </div>
      <LockFacts lockKey={lockKey} row={row} inspected={inspected} now={now} />
      <KeyFigures store={store} lockKey={lockKey} />
      <Section
        title="Holds by process"
        note={
          <div class="segments" role="group" aria-label="Time shown">
            {WINDOWS.map((each) => (
              <button key={each} type="button" aria-pressed={each === minutes} onClick={() => setMinutes(each)}>
                {each} min
              </button>
            ))}
          </div>
        }
      >
        {lanes.length > 0 ? (
          <Gantt store={store} lanes={lanes} from={from} to={now} />
        ) : (
          <Nothing state={state} title="Nothing happened">
            Nobody held this key, or waited for it.
          </Nothing>
        )}
      </Section>
      {incidents.length > 0 && (
        <Section title="Incidents" note={<span class="muted">of the last 24 hours</span>}>
          <IncidentTable rows={incidents.slice(0, MOST_INCIDENTS).map((incident) => ({ store, incident }))} />
        </Section>
      )}
      <WaitingTable store={store} calls={row?.waiting ?? []} now={now} />
      <CallTable store={store} lockKey={lockKey} />
    </>
  );
}

function shown(ms: number | undefined): string {
  return ms === undefined ? '–' : span(ms);
}

function KeyFigures({ store, lockKey }: { readonly store: StoreState; readonly lockKey: string }): VNode {
  const ended = store.ended.filter(({ key }) => key === lockKey);
  const waits = ended.map(({ waitedMs }) => waitedMs);
  const holds = ended.filter(({ outcome }) => outcome !== 'refused').map(({ heldMs }) => heldMs);
  const lost = ended.filter(({ outcome }) => outcome === 'lost').length;
  return (
    <Tiles
      tiles={[
        { label: 'Calls ended', value: ended.length.toLocaleString('en') },
        { label: 'Wait p50', value: shown(quantile(waits, 0.5)) },
        { label: 'Wait p95', value: shown(quantile(waits, 0.95)) },
        { label: 'Hold p50', value: shown(quantile(holds, 0.5)) },
        { label: 'Lost', value: String(lost), tone: lost > 0 ? 'bad' : undefined },
      ]}
    />
  );
}
