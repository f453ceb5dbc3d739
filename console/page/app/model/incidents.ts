import type { ForcedBy } from '../../../../lib/core/words/lock-event.js';
import { printable } from '../../../../lib/core/words/shown.js';
import { counted, span } from './format.js';
import { shownProcess } from './processes.js';
import type { Incident, State, StoreState } from './state.js';

/** For how long an incident that nobody has seen is worth a badge, in milliseconds. */
export const FRESH_MS = 3_600_000;

/**
 * The types of incidents that are worth a badge: refusals are counted, and an outage is on every view while it lasts.
 */
const GRAVE: ReadonlySet<Incident['type']> = new Set(['lost', 'forced', 'cycle', 'releaseFailed']);

/** How many grave incidents of the last hour this browser has not shown yet. */
export function unseenIncidents({ stores, seenAt }: State, now: number): number {
  const from = Math.max(seenAt, now - FRESH_MS);
  return stores.reduce((sum, { incidents }) => sum + incidents.filter(({ at, type }) => at > from && GRAVE.has(type)).length, 0);
}

/** Those of a key, the deadlocks in which it was held or wanted among them. */
export function incidentsOf({ incidents }: StoreState, key: string): readonly Incident[] {
  return incidents.filter(
    (incident) => incident.key === key || incident.calls?.some(({ holds, waitsFor }) => holds === key || waitsFor === key),
  );
}

/** The incident in a word or two, and how bad it is. */
export function incidentTitle({ type, reason, count }: Incident): readonly ['bad' | 'warn' | 'good', string] {
  const times = count > 1 ? ` × ${count.toLocaleString('en')}` : '';
  switch (type) {
    case 'lost':
      return ['bad', because('lost', reason)];
    case 'forced':
      return ['bad', 'released by force'];
    case 'cycle':
      return ['bad', 'deadlock'];
    case 'refused':
      return ['warn', `${reason === 'busy' ? 'gave up' : because('refused', reason)}${times}`];
    case 'releaseFailed':
      return ['warn', 'release failed'];
    case 'storeUnavailable':
      return ['bad', 'store does not answer'];
    case 'storeAnswered':
      return ['good', 'store answers again'];
    default:
      return ['warn', `${because(printable(type), reason)}${times}`];
  }
}

function because(what: string, reason: string | undefined): string {
  return reason === undefined ? what : `${what}: ${printable(reason)}`;
}

/** The further facts of an incident, as a sentence; empty for none. */
export function incidentDetail({ type, lastedMs = 0, holder, scope, calls = [], forcedBy }: Incident): string {
  switch (type) {
    case 'lost':
      return `It had been held for ${span(lastedMs)}.${forcedBy ? ` Released ${forcedWords(forcedBy)}` : ''}`;
    case 'refused':
      return `Waited for ${span(lastedMs)}${holder ? `; held by ${holder}` : ''}.`;
    case 'cycle':
      return `${counted(calls.length, 'call')} of ${scope === 'process' ? 'one process' : 'several processes'} waited for each other; this one gave way.`;
    case 'releaseFailed':
      return 'The lock is free when its lease ends.';
    case 'storeAnswered':
      return `It had not answered for ${span(lastedMs)}.`;
    case 'forced':
      return forcedBy ? `Released ${forcedWords(forcedBy)}` : '';
    case 'storeUnavailable':
      return '';
    default:
      return 'A process of another version says so.';
  }
}

/** Who released a lock by force, from where, and why. */
function forcedWords({ by, reason, process }: ForcedBy): string {
  return `${by ? `by ${by}, ` : ''}from ${shownProcess(process)}${reason ? `: ${reason}` : '.'}`;
}
