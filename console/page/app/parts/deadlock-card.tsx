import type { VNode } from 'preact';
import { printable } from '../../../../lib/core/words/shown.js';
import { counted, span } from '../model/format.js';
import { shownProcess } from '../model/processes.js';
import { linkToKey } from '../route.js';
import type { StoreIncident } from './incident-table.js';
import { Pill } from './pill.js';

/** A deadlock in words, with the call that gave way. */
export function DeadlockCard({ store, incident, now }: StoreIncident & { readonly now: number }): VNode {
  const { calls = [], at, site, key } = incident;
  const processes = new Set(calls.map(({ process }) => process)).size;
  const linkOf = (lock: string): VNode => (
    <a class="mono" href={linkToKey(store.name, lock)}>
      {printable(lock)}
    </a>
  );
  return (
    <article class="deadlock">
      <h3>
        {counted(calls.length, 'call')} in {counted(processes, 'process', 'processes')} waited for each other
        <span class="muted">{span(now - at)} ago</span>
      </h3>
      <ol>
        {calls.map((call) => (
          <li key={`${call.process} ${call.holds}`}>
            <strong>{call.site}</strong> <span class="muted">on {shownProcess(call.process)}</span> held {linkOf(call.holds)} for{' '}
            {span(call.heldMs)} and waited for {linkOf(call.waitsFor)} since {span(call.waitedMs)}.{' '}
            {call.site === site && call.waitsFor === key && <Pill tone="warn">gave way</Pill>}
          </li>
        ))}
      </ol>
      <p class="muted">To end this for good, take the locks in one order, or all at once with a list of keys.</p>
    </article>
  );
}
