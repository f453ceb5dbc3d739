import type { HoldRecord } from '../../../lib/core/seam/lock-store.js';
import type { QueuedPlace } from '../../../lib/kit/key-state.js';
import type { TableReply } from '../../../lib/kit/lock-table.js';
import type { Library, OpenTable } from '../../support/open-table.js';
import type { Operation } from '../operation.js';
import { forEachChoice } from './choices.js';
import { EMPTY, type HeldState, type Span, type TableState } from './state.js';

/** By how much the clocks of a server and of a caller may disagree about the end of a lease, in milliseconds. */
const CLOCK_MS = 5;
/** By how much what a busy answer says of a lease may differ, in milliseconds: it is a hint that is rounded. */
const REMAINING_MS = 50;
/** By how much a fence may differ from the time of its grant, in milliseconds. */
const FENCE_MS = 500;
/** A place of which nothing is known but that it comes first. */
const STRANGER = '?';
const KEY = 'k';
/** A latest time that every command has missed, in milliseconds of the wall clock of the table. */
const LONG_AGO = 1e-9;

/** The facts that the replay knows of a key's history as a whole. */
export interface Known {
  /** Whether a process of a store may not have received a message in that time. */
  isAway(store: string, from: number, to: number): boolean;
  /** The fences that the locks of an owner were told to have: none where nobody was told. */
  fencesOf(owner: string): readonly number[];
  /** When a hold was first named, and last. */
  firstNamed(name: string): number;
  lastNamed(name: string): number;
  /** Whether a store may have withdrawn a grant of that hold, and have named it anew. */
  isRenamed(hold: string): boolean;
  /** By how much the clock of fences is ahead, in milliseconds; undefined where there is no grant. */
  readonly ahead: number | undefined;
}

/**
 * An operation as the table carries it out; `withdraw` takes a hold out that replicas did not confirm, and leaves no
 * mark.
 */
export interface Command extends Omit<Operation, 'op'> {
  readonly op: Operation['op'] | 'withdraw';
  /** Whether any answer will do, since nobody was told. */
  readonly isSilent?: boolean;
  /** Of an attempt: whether the server did not grant, since the command came too late, or it had no memory left. */
  readonly isLate?: boolean;
  /** Until when the store may have renewed what it was granted, to have it confirmed by replicas. */
  readonly confirms?: number;
}

/** A way in which the table cannot have answered so. */
class Mismatch extends Error {}

const MISMATCH = new Mismatch();

interface Run {
  readonly table: OpenTable;
  readonly at: number;
}

/** Carries operations out with the lock table itself, put into a state. */
export class Stepper {
  readonly #library: Library;
  readonly #known: Known;
  /** How many operations the table has carried out. */
  steps = 0;

  constructor(library: Library, known: Known) {
    this.#library = library;
    this.#known = known;
  }

  /** Whether an operation that may have been carried out could change anything. */
  mayChange({ grant, queue, turn, done }: TableState, { op, hold = '', owner, store, place, isLate }: Command): boolean {
    const name = `${store} ${place}`;
    if (isLate && op === 'acquire') {
      return !grant && queue.length > 0;
    }
    switch (op) {
      case 'release':
      case 'renew':
        return holdsOf(grant, hold);
      case 'withdraw':
        return holdsOf(grant, hold) || holdsOf(grant, `${hold}~`);
      case 'join':
        return grant?.owner === owner;
      case 'leave':
        return turn?.place === name || queue.includes(name);
      case 'acquire':
        return (
          !done.some(([marked]) => marked === hold) && (!grant || holdsOf(grant, hold) || (place !== undefined && !queue.includes(name)))
        );
      default:
        return true;
    }
  }

  /**
   * All states that an operation may lead to if it is carried out by `latest` with the answer that it had; none where
   * this is impossible.
   */
  after(state: TableState, command: Command, latest: number): TableState[] {
    const states: TableState[] = [];
    forEachChoice((choose) => {
      try {
        const next = this.#step(state, command, latest, choose);
        states.push(next);
      } catch (error) {
        if (error !== MISMATCH) {
          throw error;
        }
      }
    });
    return states;
  }

  #step(before: TableState, command: Command, latest: number, choose: (count: number) => number): TableState {
    let from = Math.max(before.now, command.invoke);
    let to = Math.min(command.return ?? Infinity, latest);
    if (from > to) {
      throw MISMATCH;
    }
    if (command.op === 'forget') {
      return forget(before, command, from, choose);
    }
    let state = before;
    if (state.vague?.grant) {
      return this.#stepVaguely(state, command, from, to);
    }
    /** Whether something that ends in a span is over, with what that says of the moment. */
    const isOver = ([least, most]: Span): boolean => {
      const mayBeOver = least - CLOCK_MS <= to;
      const mayRun = most + CLOCK_MS > from;
      const over = mayBeOver && mayRun ? choose(2) === 1 : mayBeOver;
      if (over) {
        from = Math.max(from, least - CLOCK_MS);
      } else {
        to = Math.min(to, most + CLOCK_MS);
      }
      return over;
    };
    if (state.grant && isOver(state.grant.ends)) {
      state = { ...state, grant: undefined };
    }
    if (state.turn && isOver(state.turn.ends)) {
      state = { ...state, turn: undefined };
    }
    if (state.queue.length > 0 && isOver(state.queueEnds)) {
      state = { ...state, queue: [] };
    }
    const names = [command.hold, command.next?.hold].filter((name) => name !== undefined);
    state = { ...state, done: state.done.filter(([hold, , until]) => !names.includes(hold) || !isOver(until)) };
    if (from > to) {
      throw MISMATCH;
    }
    state = this.#withOldMarks(state, names, choose);
    if (state.vague?.queue && !state.grant) {
      // Somebody else may come first; nobody knows.
      state = { ...state, turn: undefined, queue: choose(2) === 0 ? [] : [STRANGER] };
    }
    const { hold } = command;
    if ((command.op === 'acquire' || command.op === 'join') && hold && this.#known.isRenamed(hold) && holdsOf(state.grant, hold)) {
      state = choose(2) === 0 ? state : rename(state, hold);
    }
    if (state.grant && !state.grant.isTold && (command.fence ?? 0) > state.grant.fence && this.#mayBe(state.grant, command)) {
      const fence = command.fence as number;
      state = { ...state, fence: Math.max(state.fence, fence), grant: { ...state.grant, fence, isTold: true } };
    }
    return this.#carryOut(state, this.#withFence(state, this.#perhapsLate(state, command, choose), choose), from, to, choose);
  }

  /**
   * A command whose answer nobody got may have come too late to be granted: then it has released its lock, or skipped
   * places, all the same.
   */
  #perhapsLate({ grant, queue }: TableState, command: Command, choose: (count: number) => number): Command {
    const { op, hold = '', isSilent, reply = 'ok', isLate } = command;
    const mayBeLate =
      (op === 'exchange' && (isSilent || reply !== 'ok') && (!grant || holdsOf(grant, hold))) ||
      (op === 'acquire' && isSilent && !grant && queue.length > 0);
    return mayBeLate && isLate === undefined && choose(2) === 1 ? { ...command, isLate: true } : command;
  }

  /** Where nobody was told what became of an attempt, somebody may have been told the fence of its grant. */
  #withFence({ fence }: TableState, command: Command, choose: (count: number) => number): Command {
    const isAttempt = command.op === 'acquire' || command.op === 'exchange';
    const asks = command.op === 'exchange' ? command.next : command;
    if (!isAttempt || command.isLate || command.granted !== undefined || !(command.isSilent || (command.reply ?? 'ok') !== 'ok')) {
      return command;
    }
    const told = this.#known.fencesOf(asks?.owner ?? '').filter((other) => other > fence);
    return { ...command, granted: told[choose(told.length + 1) - 1] };
  }

  #mayBe(grant: HeldState, { op, owner }: Command): boolean {
    return op === 'force' || owner === grant.owner;
  }

  /** A hold that was named before the servers lost something may have a mark, of which nobody knows. */
  #withOldMarks(state: TableState, names: readonly string[], choose: (count: number) => number): TableState {
    const { vague } = state;
    if (!vague) {
      return state;
    }
    let { done } = state;
    for (const name of names) {
      if (this.#known.firstNamed(name) < vague.since && !done.some(([hold]) => hold === name)) {
        const choice = choose(3);
        done = choice === 0 ? done : [...done, [name, choice === 1, [state.now + 10_000, state.now + 10_000]]];
      }
    }
    return { ...state, done };
  }

  /** Nothing is known but that fences rise: a grant tells who has the lock. */
  #stepVaguely(state: TableState, command: Command, from: number, to: number): TableState {
    const { op, granted, fences = 1, next, owner = '', hold = '', ttl = 0, store = '' } = command;
    const isAttempt = op === 'acquire' || op === 'exchange';
    if (!isAttempt || granted === undefined || command.isSilent) {
      return { ...state, now: from };
    }
    const asks = op === 'exchange' && next ? next : { owner, hold, fences, ttl };
    if (granted <= state.fence || this.#known.firstNamed(asks.hold) < (state.vague?.since ?? 0)) {
      // Perhaps it had the lock already, and others are in it too.
      return { ...state, now: from };
    }
    const ends: Span = [from + asks.ttl, to + asks.ttl];
    const grant = { owner: asks.owner, fence: granted, isTold: true, ttl: asks.ttl, ends, holds: [[asks.hold, store]] as const };
    return {
      ...EMPTY,
      now: from,
      fence: granted + asks.fences - 1,
      grant,
      vague: { grant: false, queue: true, since: state.vague?.since ?? 0 },
    };
  }

  /** At the earliest moment and at the latest: what the table then has are the ends of the spans. */
  #carryOut(state: TableState, command: Command, from: number, to: number, choose: (count: number) => number): TableState {
    const gone: boolean[] = [];
    let asked = 0;
    const isThere = (place: QueuedPlace): boolean => {
      if (place.name === STRANGER || !this.#known.isAway(place.process, from, to)) {
        return true;
      }
      if (asked === gone.length) {
        gone.push(choose(2) === 1);
      }
      return !(gone[asked++] as boolean);
    };
    const [least, most] = [0, 1].map((end) => {
      asked = 0;
      const at = end === 0 ? from : to;
      this.steps++;
      return this.#run(state, command, at, end as 0 | 1, isThere, [from, to]);
    }) as [Run, Run];
    return this.#read(state, command, least, most);
  }

  #run(state: TableState, command: Command, at: number, end: 0 | 1, isThere: (place: QueuedPlace) => boolean, during: Span): Run {
    const told = command.granted ?? state.fence + 1;
    const clock = { monotonic: () => at, wall: () => (told + 0.5) / 1_000 };
    const table = new this.#library.LockTable(clock, { turn: (place) => (isThere(place) ? 1 : 0), forced: () => undefined });
    const key = new this.#library.KeyState(clock);
    const later = (ends: Span): number => Math.max(ends[end], at + 0.001);
    state.queue.forEach((name) => key.$queue.set(name, placeOf(name)));
    key.$queueEndsAt = state.queue.length > 0 ? later(state.queueEnds) : Infinity;
    if (state.grant) {
      const { owner, fence, ttl, ends, holds } = state.grant;
      key.$grant = { owner, fence, since: 0, by: '', holds: new Map(holds), ttlMs: ttl, endsAt: later(ends) };
    }
    if (state.turn) {
      key.$turn = { place: placeOf(state.turn.place), endsAt: later(state.turn.ends) };
    }
    if (state.grant || state.turn || state.queue.length > 0) {
      table.$keys.set(KEY, key);
    }
    state.done.forEach(([hold, answer, until]) => table.$done.$recent.set(hold, { answer, until: later(until) }));
    table.$done.$changesAt = Infinity;
    table.$fence = state.fence;
    this.#operate(table, state, command, during);
    return { table, at };
  }

  #operate(table: OpenTable, state: TableState, command: Command, during: Span): void {
    const { op, store = '', answer, granted, isSilent = false, place, next, isLate = false } = command;
    const latest = isLate ? LONG_AGO : 0;
    const hold = recordOf(command);
    const process = store;
    const queued = place === undefined ? undefined : placeOf(`${store} ${place}`);
    const expect = (is: boolean): void => {
      if (!isSilent && is !== (answer ?? false)) {
        throw MISMATCH;
      }
    };
    switch (op) {
      case 'acquire':
        this.#expectReply(table.acquire(hold, process, queued, latest), granted, isSilent, state, command, during);
        break;
      case 'exchange': {
        const asks = recordOf({ ...command, ...next, fence: 0 });
        const { released, reply } = table.exchange(hold, asks, process, queued as QueuedPlace, command.overtakes === true, latest);
        expect(released);
        this.#expectReply(reply, granted, isSilent || command.reply !== 'ok', state, command, during);
        break;
      }
      case 'join':
        expect(table.join(hold, process) === 'joined');
        break;
      case 'renew':
        expect(table.renew(hold));
        break;
      case 'release':
        expect(table.release(hold));
        break;
      case 'withdraw':
        table.release(hold);
        table.release({ ...hold, id: `${hold.id}~` });
        table.$done.$recent.delete(hold.id);
        table.$done.$recent.delete(`${hold.id}~`);
        break;
      case 'leave':
        table.leave(KEY, (queued as QueuedPlace).name);
        break;
      case 'force':
        expect(table.forceRelease(KEY, hold.fence));
        break;
      default:
        throw new Error(`The table has no operation ${op}. Leave it out of what is replayed.`);
    }
  }

  #expectReply(
    reply: TableReply,
    granted: number | undefined,
    isSilent: boolean,
    { grant, vague }: TableState,
    { remaining, op, isLate }: Command,
    [from, to]: Span,
  ): void {
    // One that was not late queued, or was granted again, and is another branch.
    if (isLate && op === 'acquire' && !reply.late) {
      throw MISMATCH;
    }
    if (isSilent) {
      return;
    }
    if (reply.fence !== granted) {
      throw MISMATCH;
    }
    const { ahead } = this.#known;
    if (granted !== undefined && ahead !== undefined && granted !== grant?.fence) {
      const givenAt = granted / 1_000 - ahead;
      if (givenAt < from - FENCE_MS || givenAt > to + FENCE_MS) {
        throw MISMATCH;
      }
    }
    // How long the lease runs that is in the way: not where it is the caller's own hold that is over.
    if (remaining !== undefined && remaining > 0 && grant && op === 'acquire' && !vague) {
      if (remaining < grant.ends[0] - to - REMAINING_MS || remaining > grant.ends[1] - from + REMAINING_MS) {
        throw MISMATCH;
      }
    }
  }

  #read(before: TableState, command: Command, least: Run, most: Run): TableState {
    const [low, high] = [least, most].map(({ table }) => table.$keys.get(KEY));
    const span = (of: (run: typeof low) => number | undefined): Span => [of(low) ?? 0, of(high) ?? 0];
    const grant = low?.$grant;
    const wasGranted = grant !== undefined && grant.owner !== before.grant?.owner;
    const isTold = wasGranted ? command.granted !== undefined : before.grant?.isTold === true;
    const turn = low?.$turn;
    const done = [...least.table.$done.$recent]
      .filter(([hold]) => this.#known.lastNamed(hold) > least.at)
      .map(([hold, { answer, until }]) => {
        return [hold, answer, [until, most.table.$done.$recent.get(hold)?.until ?? until] as Span] as const;
      });
    const queue = [...(low?.$queue.keys() ?? [])];
    const isKnown = wasGranted && this.#endsVagueness(before, command);
    const vague = before.vague && { ...before.vague, queue: before.vague.queue && !isKnown };
    const isVague = vague?.queue === true;
    return {
      now: least.at,
      fence: least.table.$fence,
      grant: grant && {
        owner: grant.owner,
        fence: grant.fence,
        isTold,
        ttl: grant.ttlMs,
        ends: confirmed(
          span((key) => key?.$grant?.endsAt),
          command,
        ),
        holds: [...grant.holds],
      },
      turn: turn && !isVague ? { place: turn.place.name, ends: span((key) => key?.$turn?.endsAt) } : undefined,
      queue: isVague ? [] : queue,
      queueEnds: queue.length > 0 && !isVague ? span((key) => key?.$queueEndsAt) : EMPTY.queueEnds,
      done,
      vague,
    };
  }

  /** A free lock that somebody got who had not queued: nobody was in the queue. */
  #endsVagueness({ vague, grant }: TableState, { op, place, store, overtakes }: Command): boolean {
    if (!vague?.queue || grant || (op === 'exchange' && overtakes)) {
      return false;
    }
    return place === undefined || this.#known.firstNamed(`${store} ${place}`) >= vague.since;
  }
}

/** The end of a lease that is renewed once more before its grant is told. */
function confirmed([least, most]: Span, { confirms, ttl = 0, next }: Command): Span {
  return confirms === undefined ? [least, most] : [least, Math.max(most, confirms + (next?.ttl ?? ttl))];
}

/** Forgets the data that a fault took at a moment of its time. */
function forget(state: TableState, { what }: Command, now: number, choose: (count: number) => number): TableState {
  switch (what) {
    case 'lock':
      return { ...state, now, grant: undefined, turn: undefined, vague: state.vague && { ...state.vague, grant: false } };
    case 'row':
      // Some stores keep marks in the row, and some beside it.
      return {
        ...EMPTY,
        now,
        done: choose(2) === 0 ? state.done : [],
        vague: state.vague && { ...state.vague, grant: false, queue: false },
      };
    default:
      return { ...EMPTY, now };
  }
}

function recordOf({
  owner = '',
  hold = '',
  fence = 0,
  fences = 1,
  ttl = 0,
  lingers = false,
  unanswered = true,
}: Partial<Command>): HoldRecord {
  return { key: KEY, owner, id: hold, fence, fences, ttlMs: ttl, limitMs: 0, lingering: lingers, unanswered, by: '' };
}

/** A place is named by its store and its name. */
function placeOf(name: string): QueuedPlace {
  return { name, process: name.split(' ')[0] as string, polls: false };
}

function holdsOf(grant: HeldState | undefined, hold: string): boolean {
  return grant?.holds.some(([name]) => name === hold) === true;
}

function rename(state: TableState, hold: string): TableState {
  const grant = state.grant as HeldState;
  return { ...state, grant: { ...grant, holds: grant.holds.map(([name, process]) => [name === hold ? `${hold}~` : name, process]) } };
}
