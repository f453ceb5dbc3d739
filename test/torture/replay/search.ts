import type { Command, Stepper } from './stepper.js';
import { encode, EMPTY, vagueSince, type TableState } from './state.js';

/**
 * A task of a key's history: it has to be carried out between its invocation and its return; or it may be, at any time
 * of it and more than once.
 */
export interface Task {
  readonly command: Command;
  readonly from: number;
  readonly to: number;
  readonly isOptional: boolean;
}

/** A table that explains the history so far, and what it has carried out that has not returned yet. */
interface Candidate {
  readonly state: TableState;
  readonly ahead: ReadonlySet<Task>;
}

/**
 * How much is tried where the plain order fails, one after the other: how many returns before, and whether with
 * optional tasks.
 */
const RETRIES = [
  { back: 4, withOptional: false },
  { back: 4, withOptional: true },
  { back: 12, withOptional: false },
  { back: 24, withOptional: true },
  { back: 100, withOptional: false },
  { back: 100, withOptional: true },
] as const;
/**
 * The most candidates that are carried on, the most that one return may have while it is tried again, and the most
 * steps of the table that a retry takes.
 */
const MOST_CANDIDATES = { plain: 8, again: 100 } as const;
const MOST_STEPS = 3_000;
const MOST_BACK = Math.max(...RETRIES.map(({ back }) => back));
/** How many of the last returns can be tried again. */
const KEPT = 400;
/** A key is not judged any further: to find that nothing explains a return takes as long as to explain thousands. */
const MOST_VIOLATIONS = 10;

export interface KeySearch {
  /** The operations that no run of the table explains: at their return no candidate was left. */
  readonly violations: readonly Task[];
  /** Those at which the search was given up, since there were too many ways. */
  readonly givenUp: readonly Task[];
  readonly replayed: number;
  /** How often another order or an unknown outcome had to be tried. */
  readonly branches: number;
  /** The most candidates that one return took. */
  readonly longest: number;
}

interface Mode {
  /** Whether others may be carried out before the one that returns also where it can be the next. */
  readonly isFull: boolean;
  readonly withOptional: boolean;
}

const PLAIN: Mode = { isFull: false, withOptional: false };

/**
 * Whether the operations on a key are a run of the table: each between its invocation and its return, with the answer
 * that it had (Wing and Gong; Lowe). Candidates go from one return to the next, first each with the operation that
 * returns. Only where none is left, it goes some returns back and tries every order there, at last with operations that
 * have no known outcome.
 */
export class Search {
  readonly #stepper: Stepper;
  readonly #returns: readonly Task[];
  readonly #mandatory: readonly Task[];
  readonly #optional: readonly Task[];
  readonly #numbers: ReadonlyMap<Task, number>;
  /** The candidates before each return. */
  readonly #past: (readonly Candidate[])[] = [];
  readonly #pending = new Map<number, readonly Task[]>();
  /** When nobody knows what the table had: what overlaps it is not judged. */
  readonly #blanks: { readonly from: number; readonly to: number }[];
  /** The first return that may be tried again. */
  #floor = 0;
  /** The first return before which candidates were left out since all agreed. */
  #cutAt: number | undefined;
  /** Whether a retry has left something out. */
  #isCut = false;
  /** How many steps the table may have taken when a retry ends. */
  #mostSteps = Infinity;
  #branches = 0;
  #longest = 0;

  constructor(stepper: Stepper, tasks: readonly Task[]) {
    this.#stepper = stepper;
    const blanks = tasks.filter(isBlank);
    const judged = tasks.filter((task) => !isBlank(task));
    this.#blanks = blanks.map(({ from, to }) => ({ from, to }));
    this.#mandatory = judged.filter(({ isOptional }) => !isOptional).toSorted((first, second) => first.from - second.from);
    this.#optional = judged.filter(({ isOptional }) => isOptional);
    this.#returns = this.#mandatory.toSorted((first, second) => first.to - second.to);
    this.#numbers = new Map(this.#returns.map((task, number) => [task, number]));
  }

  run(): KeySearch {
    const violations: Task[] = [];
    const givenUp: Task[] = [];
    const blanks = this.#blanks.toSorted((first, second) => first.to - second.to);
    let replayed = 0;
    let candidates: readonly Candidate[] = [{ state: EMPTY, ahead: new Set() }];
    for (const [at, task] of this.#returns.entries()) {
      if (violations.length === MOST_VIOLATIONS) {
        break;
      }
      while (blanks[0] && blanks[0].from <= task.to) {
        candidates = this.#forget(candidates, (blanks.shift() as { to: number }).to, at);
      }
      this.#past[at] = candidates;
      if (at >= KEPT) {
        this.#past[at - KEPT] = [];
      }
      if (this.#isBlank(task)) {
        continue;
      }
      replayed++;
      const next = this.#carryOn(candidates, at);
      if (next.length === 0) {
        const isCertain = !this.#isCut && (this.#cutAt === undefined || this.#cutAt > at - KEPT);
        (isCertain ? violations : givenUp).push(task);
        this.#blanks.push({ from: task.to, to: task.to });
        candidates = this.#forget(candidates, task.to, at + 1);
        continue;
      }
      candidates = next.slice(0, MOST_CANDIDATES.plain);
      if (next.length > candidates.length) {
        this.#cutAt ??= at + 1;
      }
      const [first] = candidates;
      if (candidates.length === 1 && first && first.ahead.size === 0 && first.state.queue.length === 0 && !first.state.turn) {
        this.#cutAt = undefined;
      }
    }
    return { violations, givenUp, replayed, branches: this.#branches, longest: this.#longest };
  }

  #forget(candidates: readonly Candidate[], since: number, floor: number): Candidate[] {
    this.#floor = floor;
    this.#cutAt = undefined;
    this.#pending.clear();
    const fence = Math.max(0, ...candidates.map(({ state }) => state.fence));
    return [{ state: vagueSince(since, fence), ahead: new Set() }];
  }

  #isBlank({ from, to }: Task): boolean {
    return this.#blanks.some((blank) => from <= blank.to && to >= blank.from && !(from === to && to === blank.from));
  }

  #carryOn(candidates: readonly Candidate[], at: number): readonly Candidate[] {
    let next = this.#return(candidates, at, PLAIN);
    this.#isCut = false;
    for (const { back, withOptional } of RETRIES) {
      if (next.length > 0) {
        break;
      }
      // Where candidates were left out, what is needed may be among them.
      const complete = back === MOST_BACK ? (this.#cutAt ?? at) - 1 : at;
      const first = Math.max(this.#floor, at - KEPT + 1, Math.min(at - back, complete), 0);
      this.#mostSteps = this.#stepper.steps + MOST_STEPS;
      this.#isCut = false;
      const tried = [this.#past[first] as readonly Candidate[]];
      for (let again = first; again <= at; again++) {
        const before = tried.at(-1) as readonly Candidate[];
        tried.push(this.#isBlank(this.#returns[again] as Task) ? before : this.#return(before, again, { isFull: true, withOptional }));
      }
      next = tried.at(-1) as readonly Candidate[];
      if (next.length > 0) {
        // A later try begins with candidates that have explained all of it so far.
        tried.slice(0, -1).forEach((found, index) => (this.#past[first + index] = found));
      } else if (tried[tried.length - 2]?.length === 0) {
        // Not even what came before is explained from there: that needs what lies further back.
        this.#isCut = true;
      }
    }
    this.#mostSteps = Infinity;
    return next;
  }

  /** The candidates after a return: those that have carried it out by then. */
  #return(candidates: readonly Candidate[], at: number, mode: Mode): readonly Candidate[] {
    const task = this.#returns[at] as Task;
    const found = new Map<string, Candidate>();
    const seen = new Map<string, number>();
    // Those that suppose least come first.
    const open = [...candidates];
    for (const candidate of open) {
      if (candidate.ahead.has(task)) {
        const ahead = new Set(candidate.ahead);
        ahead.delete(task);
        this.#add(found, { state: candidate.state, ahead });
        continue;
      }
      const after = this.#stepper.after(candidate.state, task.command, task.to);
      after.forEach((state) => this.#add(found, { state, ahead: candidate.ahead }));
      if (!mode.isFull) {
        continue;
      }
      if (this.#stepper.steps >= this.#mostSteps) {
        break;
      }
      for (const other of this.#others(at, candidate, mode)) {
        if (other.isOptional && !this.#stepper.mayChange(candidate.state, other.command)) {
          continue;
        }
        const ahead = other.isOptional ? candidate.ahead : new Set([...candidate.ahead, other]);
        for (const state of this.#stepper.after(candidate.state, other.command, Math.min(task.to, other.to))) {
          const isChanged = !other.isOptional || encode({ ...state, now: 0 }) !== encode({ ...candidate.state, now: 0 });
          const name = this.#nameOf({ state, ahead });
          // Whatever may follow a state may follow the same state at an earlier time.
          if (isChanged && !((seen.get(name) ?? Infinity) <= state.now) && this.#stepper.steps < this.#mostSteps) {
            seen.set(name, state.now);
            this.#branches++;
            open.push({ state, ahead });
          }
        }
      }
    }
    this.#longest = Math.max(this.#longest, seen.size, found.size);
    this.#isCut ||= this.#stepper.steps >= this.#mostSteps || found.size >= MOST_CANDIDATES.again;
    return [...found.values()];
  }

  #add(found: Map<string, Candidate>, candidate: Candidate): void {
    const name = this.#nameOf(candidate);
    const same = found.get(name);
    if (same ? candidate.state.now < same.state.now : found.size < MOST_CANDIDATES.again) {
      found.set(name, candidate);
    }
  }

  #nameOf({ state, ahead }: Candidate): string {
    return `${encode({ ...state, now: 0 })} ${[...ahead]
      .map((task) => String(this.#numbers.get(task)))
      .toSorted()
      .join()}`;
  }

  /** The other tasks that may be carried out before a return. */
  #others(at: number, { ahead, state }: Candidate, { withOptional }: Mode): Task[] {
    const { to } = this.#returns[at] as Task;
    const pending = this.#pending.get(at) ?? this.#pendingAt(at);
    this.#pending.set(at, pending);
    const optional = withOptional ? this.#optional.filter((other) => other.from <= to && other.to >= state.now) : [];
    return [...pending.filter((other) => !ahead.has(other)), ...optional];
  }

  #pendingAt(at: number): Task[] {
    const { to } = this.#returns[at] as Task;
    return this.#mandatory.filter((other) => other.from <= to && (this.#numbers.get(other) as number) > at && !this.#isBlank(other));
  }
}

function isBlank({ command }: Task): boolean {
  return command.op === 'forget' && command.what === 'anything';
}
