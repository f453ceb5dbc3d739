import type { VNode } from 'preact';
import { printable } from '../../../../lib/core/words/shown.js';
import { incidentDetail, incidentTitle } from '../model/incidents.js';
import { processName } from '../model/processes.js';
import type { Incident, StoreState } from '../model/state.js';
import { linkToKey } from '../route.js';
import { DataTable } from './data-table.js';
import { Pill } from './pill.js';
import { Site } from './site.js';
import { Time } from './time.js';
import { Words } from './words.js';

const HEADS = [['When'], ['What'], ['Key'], ['Call', 'wide'], ['Process', 'wide'], ['More', 'wide']] as const;

/** An incident, and the store in which it happened. */
export interface StoreIncident {
  readonly store: StoreState;
  readonly incident: Incident;
}

/** Incidents as a table, the last one first. */
export function IncidentTable({ rows }: { readonly rows: readonly StoreIncident[] }): VNode {
  return (
    <DataTable label="Incidents" heads={HEADS}>
      {rows.map(({ store, incident }) => (
        <IncidentRow key={`${store.name} ${incident.id}`} store={store} incident={incident} />
      ))}
    </DataTable>
  );
}

function IncidentRow({ store, incident }: StoreIncident): VNode {
  const [tone, title] = incidentTitle(incident);
  const { at, key, process, fence } = incident;
  const detail = incidentDetail(incident);
  return (
    <tr>
      <td>
        <Time at={at} />
      </td>
      <td>
        <Pill tone={tone}>{title}</Pill>
      </td>
      <th scope="row">
        {key === '' ? (
          <span class="muted">store {store.name}</span>
        ) : (
          <a class="key mono" href={linkToKey(store.name, key)}>
            {printable(key)}
          </a>
        )}
        {fence !== undefined && <span class="under mono">fence {fence}</span>}
        <span class="under narrow">
          <Words text={detail} />
        </span>
      </th>
      <td class="wide call">
        <Site call={incident} />
      </td>
      <td class="wide process">{processName(store, process)}</td>
      <td class="wide muted detail">
        <Words text={detail} />
      </td>
    </tr>
  );
}
