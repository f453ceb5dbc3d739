import { KnownIncidents } from './known-incidents.js';
import type { Snapshot } from './snapshot.js';

/** From the end of a survey to the next one, in milliseconds. */
const PAUSE_MS = 2_000;
/** A survey that is younger than this is good enough for who polls, in milliseconds. */
const FRESH_MS = 1_000;

/** Hears each survey, as the text of a message. */
export type Viewer = (message: string) => void;

/**
 * Surveys the stores while somebody looks: all viewers share one survey, and nothing is asked where there are none. The first survey of a viewer
 * has all ended calls and incidents, the next ones those that are new.
 */
export class LiveSurvey {
  readonly #survey: (incidentsMs: number) => Promise<Snapshot>;
  readonly #incidents = new KnownIncidents();
  /** Whether each viewer has had all that was there before. */
  readonly #viewers = new Map<Viewer, boolean>();
  #told: ReadonlySet<string> = new Set();
  #asking: Promise<Snapshot> | undefined;
  #latest: { readonly snapshot: Snapshot; readonly at: number } | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `survey` asks the stores, for the incidents of so many milliseconds. */
  constructor(survey: (incidentsMs: number) => Promise<Snapshot>) {
    this.#survey = survey;
  }

  /** Returns what ends it. */
  watch(viewer: Viewer): () => void {
    this.#viewers.set(viewer, false);
    if (this.#viewers.size === 1) {
      void this.#round();
    }
    return () => {
      this.#viewers.delete(viewer);
      if (this.#viewers.size === 0) {
        clearTimeout(this.#timer);
        this.#told = new Set();
        this.#incidents.forget();
      }
    };
  }

  /** For who polls. */
  async once(): Promise<Snapshot> {
    const latest = this.#latest;
    return latest && performance.now() - latest.at < FRESH_MS ? latest.snapshot : this.#ask();
  }

  async #round(): Promise<void> {
    clearTimeout(this.#timer);
    const snapshot = await this.#ask();
    if (this.#viewers.size === 0) {
      return;
    }
    const whole = lazily(() => JSON.stringify(snapshot));
    const news = lazily(() => JSON.stringify(newsOf(snapshot, this.#told)));
    for (const [viewer, hasAll] of this.#viewers) {
      viewer(hasAll ? news() : whole());
      this.#viewers.set(viewer, true);
    }
    this.#told = namesOf(snapshot);
    this.#timer = setTimeout(() => void this.#round(), PAUSE_MS).unref();
  }

  #ask(): Promise<Snapshot> {
    return (this.#asking ??= this.#askAll());
  }

  async #askAll(): Promise<Snapshot> {
    const askedAt = performance.now();
    const answer = await this.#survey(this.#incidents.askFor(askedAt));
    const at = performance.now();
    const snapshot = this.#incidents.completed(answer, askedAt, at);
    this.#asking = undefined;
    this.#latest = { snapshot, at };
    return snapshot;
  }
}

function newsOf(snapshot: Snapshot, told: ReadonlySet<string>): Snapshot {
  const isNew = (row: Told): boolean => !told.has(nameOf(row));
  return {
    ...snapshot,
    stores: snapshot.stores.map((store) => ({ ...store, ended: store.ended.filter(isNew), incidents: store.incidents.filter(isNew) })),
  };
}

interface Told {
  readonly id: string;
  readonly count?: number;
}

/** An incident that happened again is told again. */
function nameOf({ id, count = 1 }: Told): string {
  return `${id} ${count}`;
}

function namesOf({ stores }: Snapshot): Set<string> {
  return new Set(stores.flatMap(({ ended, incidents }) => [...ended, ...incidents].map(nameOf)));
}

function lazily(make: () => string): () => string {
  let made: string | undefined;
  return () => (made ??= make());
}
