import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { ViewProps } from '../app.js';
import { zoneOf } from '../model/format.js';
import { IncidentTable } from '../parts/incident-table.js';
import { Nothing } from '../parts/nothing.js';
import { Pager } from '../parts/pager.js';
import { Section } from '../parts/section.js';

const PAGE_SIZE = 100;

/**
 * The incidents of a day: losses, forced releases, deadlocks, refusals, outages. Opening this view puts the badge out.
 */
export function IncidentsView({ state, now, change }: ViewProps): VNode {
  const [page, setPage] = useState(0);
  const rows = state.stores
    .flatMap((store) => store.incidents.map((incident) => ({ store, incident })))
    .toSorted((one, other) => other.incident.at - one.incident.at);
  const latest = rows[0]?.incident.at ?? 0;
  useEffect(() => change({ type: 'seen', at: Date.now() }), [latest]);
  const shownPage = Math.min(page, Math.max(0, Math.ceil(rows.length / PAGE_SIZE) - 1));
  return (
    <Section title="Incidents" note={<span class="muted">of the last 24 hours, in {zoneOf(now)}</span>}>
      {rows.length === 0 ? (
        <Nothing state={state} title="Nothing went wrong">
          As far as the processes know that run.
        </Nothing>
      ) : (
        <IncidentTable rows={rows.slice(shownPage * PAGE_SIZE, (shownPage + 1) * PAGE_SIZE)} />
      )}
      <Pager page={shownPage} size={PAGE_SIZE} count={rows.length} turn={setPage} />
    </Section>
  );
}
