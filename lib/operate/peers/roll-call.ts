import { randomUUID } from 'node:crypto';
import type { Clock } from '../../core/seam/time.js';
import type { Messenger } from './messenger.js';
import type { Roll, RollAnswer } from './roll-message.js';
import type { Survey } from './survey.js';

/** For how long answers are waited for, in milliseconds: at least, after the last one, and at most. */
const ANSWERS_MS = { least: 300, after: 100, most: 1_000 } as const;
/** For how long a process is expected to answer that has answered once, in milliseconds. */
export const EXPECTED_MS = 60_000;
/**
 * The most messages of answers that are taken, and the most characters of all of them: whoever may send messages can
 * send answers.
 */
const MOST_PARTS = 2_000;
const MOST_CHARACTERS = 32_000_000;
/** The most processes that are expected to answer. */
const MOST_EXPECTED = 2_000;

/** The questions of a survey, besides the locks and the calls that wait. */
export interface SurveyOptions {
  /** The calls that ended last, of processes that record them. Default: `false`. */
  readonly recent?: boolean | undefined;
  /** The health of each process's store. Default: `false`. */
  readonly health?: boolean | undefined;
  /** How far back incidents are asked for, in milliseconds. Default: none are. */
  readonly incidentsMs?: number | undefined;
}

/** A process sends its answer in numbered parts: those that have arrived, by number. */
type Heard = Map<number, RollAnswer>;

/**
 * Asks all processes that use a store which locks they hold, and collects their answers. Between two surveys only the
 * names of the processes are kept.
 */
export class RollCall {
  readonly #clock: Clock;
  readonly #store: string;
  readonly #to: string;
  readonly #messenger: Messenger;
  /** By the id of the roll. */
  readonly #collecting = new Map<string, (answer: RollAnswer, length: number) => void>();
  /** When each process answered last, the last one last. */
  readonly #answeredAt = new Map<string, number>();

  /** `store` is the name under which the store is registered, and `to` the name of this process in it. */
  constructor(clock: Clock, store: string, to: string, messenger: Messenger) {
    this.#clock = clock;
    this.#store = store;
    this.#to = to;
    this.#messenger = messenger;
  }

  /** `own` is the answer of this process itself. */
  async survey({ recent = false, health = false, incidentsMs }: SurveyOptions, own: readonly RollAnswer[]): Promise<Survey> {
    const id = randomUUID();
    const heard = new Map<string, Heard>();
    const take = (answer: RollAnswer): void => {
      const { id: process } = answer.process;
      heard.set(process, (heard.get(process) ?? new Map<number, RollAnswer>()).set(answer.part, answer));
      this.#answeredAt.delete(process);
      this.#answeredAt.set(process, this.#clock.monotonic());
      const [oldest] = this.#answeredAt.size > MOST_EXPECTED ? this.#answeredAt.keys() : [];
      this.#answeredAt.delete(oldest ?? '');
    };
    own.forEach(take);
    const from = own[0]?.process.id ?? '';
    let untaken = 0;
    if (this.#messenger.process !== undefined) {
      untaken = await this.#collect({ kind: 'roll', id, from, to: this.#to, recent, health, incidentsMs }, heard, take);
    }
    const answers = [...heard.values()].flatMap((parts) => Array.from(parts.values()));
    return {
      store: this.#store,
      processes: [...new Map(answers.map(({ process }) => [process.id, process])).values()],
      held: rowsOf(answers, ({ held }) => held),
      waiting: rowsOf(answers, ({ waiting }) => waiting),
      ended: rowsOf(answers, ({ ended }) => ended),
      incidents: rowsOf(answers, ({ incidents }) => incidents),
      leftOut: answers.reduce((sum, { leftOut }) => sum + leftOut, untaken),
      silent: this.#expected().filter((process) => !heard.has(process)),
    };
  }

  /** A process has answered; one that nobody waits for is not listened to. */
  heard(answer: RollAnswer, length: number): void {
    this.#collecting.get(answer.id)?.(answer, length);
  }

  /**
   * A process has closed: no answer of it is expected. A stranger can say so as well; the process is expected again
   * once it answers.
   */
  left(process: string): void {
    this.#answeredAt.delete(process);
  }

  /**
   * Sends the roll, and takes the answers for as long as some may still come. Resolves to how many locks and calls were
   * too many.
   */
  async #collect(roll: Roll, heard: ReadonlyMap<string, Heard>, take: (answer: RollAnswer) => void): Promise<number> {
    const startedAt = this.#clock.monotonic();
    const expected = this.#expected();
    let lastAt = startedAt;
    let parts = 0;
    let characters = 0;
    let untaken = 0;
    await new Promise<void>((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      const look = (): void => {
        const now = this.#clock.monotonic();
        const isComplete = [...heard.values()].every(isWhole) && expected.every((process) => heard.has(process));
        const until = isComplete ? Math.max(startedAt + ANSWERS_MS.least, lastAt + ANSWERS_MS.after) : startedAt + ANSWERS_MS.most;
        const leftMs = Math.min(until, startedAt + ANSWERS_MS.most) - now;
        clearTimeout(timer);
        if (leftMs <= 0) {
          resolve();
        } else {
          timer = setTimeout(look, leftMs);
        }
      };
      this.#collecting.set(roll.id, (answer, length) => {
        if (parts >= MOST_PARTS || characters + length > MOST_CHARACTERS) {
          untaken += answer.held.length + answer.waiting.length;
          return;
        }
        parts++;
        characters += length;
        take(answer);
        lastAt = this.#clock.monotonic();
        look();
      });
      this.#messenger.send(roll);
      look();
    });
    this.#collecting.delete(roll.id);
    return untaken;
  }

  /** The processes that have answered in the last minute. */
  #expected(): string[] {
    const now = this.#clock.monotonic();
    for (const [process, at] of this.#answeredAt) {
      if (now - at > EXPECTED_MS) {
        this.#answeredAt.delete(process);
      }
    }
    return [...this.#answeredAt.keys()];
  }
}

function isWhole(parts: Heard): boolean {
  const [first] = parts.values();
  return first !== undefined && parts.size >= first.parts;
}

/** The rows of all answers, each with its process. */
function rowsOf<T extends object>(answers: readonly RollAnswer[], rows: (answer: RollAnswer) => readonly T[]): (T & { process: string })[] {
  return answers.flatMap((answer) => rows(answer).map((row) => Object.assign(row, { process: answer.process.id })));
}
