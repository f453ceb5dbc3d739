import type { FoundIncident } from '../../lib/operate/peers/survey.js';
import type { StoreAnswer } from './snapshot.js';

/** How far back incidents are shown, in milliseconds. */
export const DAY_MS = 24 * 3_600_000;
/** How far back they are asked for most of the time, in milliseconds: those before are known. */
const LATELY_MS = 60_000;
/** How often all of them are asked for, in milliseconds: a process may not have answered for a while. */
const ALL_EVERY_MS = 45_000;

/** How many of a store are kept: as many as a browser shows. */
const MOST_KEPT = 5_000;

type Known = FoundIncident & { readonly at: number };

/**
 * Remembers the incidents of the day while somebody looks, so that processes need not send all of them in each survey.
 */
export class KnownIncidents {
  /** By store and id. */
  #known = new Map<string, Map<string, Known>>();
  #askedAllAt = -Infinity;

  /** How far back the next survey asks, in milliseconds. */
  askFor(now: number): number {
    if (now - this.#askedAllAt < ALL_EVERY_MS) {
      return LATELY_MS;
    }
    this.#askedAllAt = now;
    return DAY_MS;
  }

  /**
   * The answers with all incidents that are known, the last one last. Processes answer at once, so the ages that they
   * tell count from when they were asked.
   */
  completed(stores: readonly StoreAnswer[], askedAt: number, now: number): StoreAnswer[] {
    return stores.map((store) => ({ ...store, incidents: this.#merged(store, askedAt, now) }));
  }

  forget(): void {
    this.#known = new Map();
    this.#askedAllAt = -Infinity;
  }

  #merged({ store, incidents }: StoreAnswer, askedAt: number, now: number): FoundIncident[] {
    const known = this.#known.get(store) ?? new Map<string, Known>();
    this.#known.set(store, known);
    for (const incident of incidents) {
      known.set(incident.id, { ...incident, at: askedAt - incident.agoMs });
    }
    for (const [id, { at }] of known) {
      if (now - at > DAY_MS) {
        known.delete(id);
      }
    }
    const all = [...known.values()].toSorted((one, other) => one.at - other.at);
    all.splice(0, all.length - MOST_KEPT).forEach(({ id }) => known.delete(id));
    return all.map((incident) => told(incident, now));
  }
}

function told({ at, ...incident }: Known, now: number): FoundIncident {
  return { ...incident, agoMs: Math.round(now - at) };
}
