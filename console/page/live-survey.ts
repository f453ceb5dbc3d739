import { KnownIncidents } from './known-incidents.js';
import type { Snapshot, StoreAnswer } from './snapshot.js';
import { SurveySequence } from './survey-sequence.js';

/** From the end of a survey to the next one, in milliseconds. */
const PAUSE_MS = 2_000;
/** A survey that is younger than this is good enough for who polls, in milliseconds. */
const FRESH_MS = 1_000;

/** Hears each survey, as the text of a message. */
export type Viewer = (message: string) => void;

interface Asked {
  readonly answers: readonly StoreAnswer[];
  readonly askedAt: number;
  readonly at: number;
}

/**
 * Surveys the stores while somebody looks: all viewers share one survey, and nothing is asked where there is no viewer.
 * The first survey of a viewer is whole, with all ended calls and incidents; the next ones have only the changes.
 */
export class LiveSurvey {
  readonly #survey: (incidentsMs: number) => Promise<readonly StoreAnswer[]>;
  readonly #incidents = new KnownIncidents();
  /** Whether each viewer has had the survey before. */
  readonly #viewers = new Map<Viewer, boolean>();
  #sequence = new SurveySequence();
  #asking: Promise<Asked> | undefined;
  #latest: Asked | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `survey` asks the stores, for the incidents of so many milliseconds. */
  constructor(survey: (incidentsMs: number) => Promise<readonly StoreAnswer[]>) {
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
        this.#sequence = new SurveySequence();
        this.#incidents.forget();
      }
    };
  }

  /** For who polls: each survey is whole, and of no stream. */
  async once(): Promise<Snapshot> {
    const latest = this.#latest;
    const { answers, askedAt } = latest && now() - latest.at < FRESH_MS ? latest : await this.#ask();
    return new SurveySequence().next(answers, askedAt, now()).whole();
  }

  async #round(): Promise<void> {
    clearTimeout(this.#timer);
    const { answers, askedAt } = await this.#ask();
    if (this.#viewers.size === 0) {
      return;
    }
    const step = this.#sequence.next(answers, askedAt, now());
    const whole = lazily(() => JSON.stringify(step.whole()));
    const changes = lazily(() => JSON.stringify(step.changes));
    for (const [viewer, isFollowing] of this.#viewers) {
      viewer(isFollowing ? changes() : whole());
      this.#viewers.set(viewer, true);
    }
    this.#timer = setTimeout(() => void this.#round(), PAUSE_MS).unref();
  }

  #ask(): Promise<Asked> {
    return (this.#asking ??= this.#askAll());
  }

  async #askAll(): Promise<Asked> {
    const askedAt = now();
    const found = await this.#survey(this.#incidents.askFor(askedAt));
    const at = now();
    this.#asking = undefined;
    return (this.#latest = { answers: this.#incidents.completed(found, askedAt, at), askedAt, at });
  }
}

/** A clock that nobody sets, in whole milliseconds. */
function now(): number {
  return Math.round(performance.now());
}

function lazily(make: () => string): () => string {
  let made: string | undefined;
  return () => (made ??= make());
}
