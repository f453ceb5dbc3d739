import type { StoreSnapshot } from '../../snapshot.js';
import { conditionOf } from './condition.js';
import type { Ended, Held, Incident, State, StoreState } from './state.js';

/** For how long ended calls are shown, in milliseconds, and how many at most. */
const KEPT = { ms: 15 * 60_000, calls: 20_000 } as const;
/** For how long incidents are shown, in milliseconds, and how many at most. */
const INCIDENTS_KEPT = { ms: 24 * 3_600_000, incidents: 5_000 } as const;

/** The state after a survey that came at `at`, whose rows have the times of this browser. */
export function merge(state: State, surveys: readonly StoreSnapshot[], at: number): State {
  const before = new Map(state.stores.map((store) => [store.name, store]));
  const stores = surveys.map((store) => mergeStore(before.get(store.store), store, at));
  const losses = stores.flatMap((store) => (before.has(store.name) ? newLosses(before.get(store.name), store) : []));
  return { ...state, stores, at, losses };
}

function mergeStore(before: StoreState | undefined, survey: StoreSnapshot, at: number): StoreState {
  const condition = conditionOf(survey, before?.troubles ?? [], at);
  if (survey.failed !== undefined && before) {
    return { ...before, ...condition, failed: survey.failed };
  }
  return {
    ...condition,
    name: survey.store,
    at,
    failed: survey.failed,
    processes: new Map([...silentOf(before, survey), ...survey.processes.map((process) => [process.id, process] as const)]),
    silent: survey.silent,
    held: [...survey.held, ...unanswered(before, survey, at)],
    waiting: survey.waiting,
    ended: mergeEnded(before?.ended ?? [], survey, at),
    incidents: mergeIncidents(before?.incidents ?? [], survey, at),
    leftOut: survey.leftOut,
    search: before?.search,
    orphans: survey.orphans.map((orphan) => ({
      ...orphan,
      until: orphan.remainingMs === undefined ? undefined : at + orphan.remainingMs,
    })),
    leases: mergeLeases(before?.leases, survey, at),
  };
}

/** Processes that have answered before, and do not now. */
function silentOf(before: StoreState | undefined, { silent }: StoreSnapshot): (readonly [string, NonNullable<ProcessOf>])[] {
  return silent.flatMap((id) => {
    const known = before?.processes.get(id);
    return known ? [[id, known] as const] : [];
  });
}

type ProcessOf = ReturnType<StoreState['processes']['get']>;

/** The locks that processes held when they answered last, for as long as their leases last. */
function unanswered(before: StoreState | undefined, { silent, held }: StoreSnapshot, at: number): Held[] {
  if (silent.length === 0) {
    return [];
  }
  const isHeldAnew = new Set(held.map(({ key }) => key));
  return (before?.held ?? [])
    .filter(
      ({ process, until, key, shares }) =>
        silent.includes(process) && (until === undefined || until > at) && (shares !== undefined || !isHeldAnew.has(key)),
    )
    .map((lock) => ({ ...lock, isSilent: true }));
}

function mergeEnded(before: readonly Ended[], { ended }: StoreSnapshot, at: number): readonly Ended[] {
  const known = new Set(before.map(({ id }) => id));
  const added = ended.filter(({ id }) => !known.has(id)).map((call) => ({ ...call, endedAt: at - call.agoMs }));
  if (added.length === 0 && (before.at(-1)?.endedAt ?? at) > at - KEPT.ms) {
    return before;
  }
  const again = new Set(added.map(({ instead }) => instead));
  return [...before.filter(({ id }) => !again.has(id)), ...added]
    .filter(({ endedAt }) => endedAt > at - KEPT.ms)
    .toSorted((one, other) => other.endedAt - one.endedAt)
    .slice(0, KEPT.calls);
}

function mergeLeases(before: ReadonlyMap<string, number> | undefined, { held }: StoreSnapshot, at: number): ReadonlyMap<string, number> {
  const leases = new Map(before);
  for (const { name, until = 0 } of held) {
    leases.set(name, Math.max(until - at, leases.get(name) ?? 0));
  }
  return leases;
}

/** One that happened again takes the place of what was known of it. */
function mergeIncidents(before: readonly Incident[], { incidents }: StoreSnapshot, at: number): readonly Incident[] {
  if (incidents.length === 0 && (before.at(-1)?.at ?? at) > at - INCIDENTS_KEPT.ms) {
    return before;
  }
  const told = new Map(incidents.map((incident) => [incident.id, { ...incident, at: at - incident.agoMs }]));
  return [...before.filter(({ id }) => !told.has(id)), ...told.values()]
    .filter((incident) => incident.at > at - INCIDENTS_KEPT.ms)
    .toSorted((one, other) => other.at - one.at)
    .slice(0, INCIDENTS_KEPT.incidents);
}

function newLosses(before: StoreState | undefined, { incidents }: StoreState): readonly Incident[] {
  if (before?.incidents === incidents) {
    return [];
  }
  const known = new Set(before?.incidents.map(({ id }) => id));
  return incidents.filter(({ id, type }) => type === 'lost' && !known.has(id));
}
