import type { HoldRecord } from '../../lib/core/seam/lock-store.js';
import type { QueuedPlace } from '../../lib/kit/key-state.js';
import type { JoinReply, TableReply } from '../../lib/kit/lock-table.js';
import type { Edit } from '../support/defective.js';
import { openLibrary, type Library, type OpenShared, type OpenTable } from '../support/open-table.js';
import { Violation } from './violation.js';
import { START_MS } from './scope.js';
import { checkBusy, checkChange, checkOrderOfShared, type Change } from './sharing.js';
import {
  isGone,
  nameOf,
  numberOf,
  type Answer,
  type State,
  type Stored,
  type StoredKey,
  type StoredShared,
  type Transit,
} from './state.js';

/**
 * Carries commands out: each time with the lock table itself, put into the state that is explored, and read from it
 * afterwards.
 */
export class Server {
  readonly #library: Library;
  readonly #clock = { at: 0, monotonic: (): number => this.#clock.at, wall: (): number => START_MS + this.#clock.at };
  /** Whom the command that is carried out has notified. */
  #messages: { readonly process: string; readonly kind: 'turn' | 'forced'; readonly place: string; readonly fence: number }[] = [];
  #state!: State;

  private constructor(library: Library) {
    this.#library = library;
  }

  /** A server with the table of the library, and with `edits` made to it. */
  static async with(edits: readonly Edit[] = []): Promise<Server> {
    return new Server(await openLibrary(edits));
  }

  /** Carries a command out, and puts its reply and its messages on their way. */
  carryOut(state: State, command: Transit): void {
    const before = this.#keyOf(state, command.key);
    const answer = this.#run(state, command.key, (table) => this.#answer(table, state, command, before));
    const after = this.#keyOf(state, command.key);
    const change = { before, after, wasSetBack: state.wasSetBack };
    checkChange(change, command);
    this.#checkShared(command, answer, change);
    if (after?.grant && after.grant.owner !== before?.grant?.owner && command.kind !== 'acquire' && command.kind !== 'exchange') {
      throw new Violation(`a ${command.kind} made the lock of ${after.grant.owner}`);
    }
    if (command.kind === 'release' || command.kind === 'exchange') {
      if (!state.released.includes(command.hold)) {
        state.released.push(command.hold);
      }
    }
    const sender = state.processes[command.process];
    if (!command.isCopy && sender && !isGone(sender)) {
      state.transits.push({ ...command, phase: 'reply', answer, isLate: false });
    }
  }

  /** An operator releases a lock by force; whether it was held. */
  force(state: State, key: string): boolean {
    const before = this.#keyOf(state, key);
    const fence = before?.grant?.fence ?? before?.shared?.fence;
    const wasHeld = fence !== undefined && this.#run(state, key, (table) => table.forceRelease(key, fence));
    checkChange({ before, after: this.#keyOf(state, key), wasSetBack: state.wasSetBack }, { kind: 'forced', key, hold: '' });
    return wasHeld;
  }

  /** Forgets what is over. */
  tidy(state: State): void {
    state.stored = this.#read(this.#load(state));
  }

  #keyOf({ stored }: State, key: string): StoredKey | undefined {
    return stored.keys.find((one) => one.key === key);
  }

  /** Checks the answer to an attempt at a hold that shares its key, or would. */
  #checkShared({ kind, place, shares, hold }: Transit, { held, isUndecided }: Answer, change: Change): void {
    if (kind !== 'acquire') {
      return;
    }
    if (held && shares !== undefined && !change.before?.shared?.holds.some(([id]) => id === hold)) {
      checkOrderOfShared(place, change);
    }
    if (!held && !isUndecided) {
      checkBusy(place, shares, change);
    }
  }

  #run<T>(state: State, key: string, operation: (table: OpenTable) => T): T {
    this.#state = state;
    this.#messages = [];
    const table = this.#load(state);
    const result = operation(table);
    state.stored = this.#read(table);
    for (const { process, kind, place, fence } of this.#messages) {
      const base = {
        hold: '',
        owner: '',
        fences: 0,
        ttlMs: 0,
        unanswered: false,
        sentAt: state.now,
        latest: 0,
        isLate: false,
        isCopy: false,
      };
      state.transits.push({ ...base, phase: 'message', process: numberOf(process), kind, key, place, fence });
    }
    return result;
  }

  #answer(table: OpenTable, state: State, command: Transit, before: StoredKey | undefined): Answer {
    const { kind, key, hold: id, owner, shares, fence, fences, ttlMs, unanswered } = command;
    const latest = START_MS + command.latest;
    const hold: HoldRecord = { key, owner, id, shares, fence, fences, ttlMs, limitMs: 0, lingering: false, unanswered, by: '' };
    const process = nameOf(command.process);
    const place = command.place === '' ? undefined : { name: command.place, process, polls: false };
    const none = { held: false, released: false, fence: 0, remainingMs: 0, rank: -1, epoch: state.epoch };
    switch (kind) {
      case 'acquire':
        return this.#granted(state, command, hold, before, table.acquire(hold, process, place, latest));
      case 'join':
        return { ...none, held: this.#joined(state, table.join(hold, process, latest), id), fence };
      case 'renew':
        return { ...none, held: this.#renewed(state, table.renew(hold), id) };
      case 'release':
        return { ...none, released: table.release(hold) };
      case 'exchange': {
        const next = { ...hold, id: command.next?.hold ?? '', owner: command.next?.owner ?? '', fence: 0 };
        const { released, reply } = table.exchange(hold, next, process, place as QueuedPlace, command.next?.mayOvertake === true, latest);
        return { ...this.#granted(state, command, next, before, reply), released };
      }
      default:
        table.leave(key, command.place);
        return none;
    }
  }

  #joined({ released }: State, reply: JoinReply, hold: string): boolean {
    if (reply === 'joined' && released.includes(hold)) {
      throw new Violation(`${hold} joined a lock after its own release`);
    }
    return reply === 'joined';
  }

  #renewed({ released }: State, held: boolean, hold: string): boolean {
    if (held && released.includes(hold)) {
      throw new Violation(`${hold} was renewed after its own release`);
    }
    return held;
  }

  /** Reads the reply to an attempt, and checks what a grant promises. */
  #granted(state: State, command: Transit, hold: HoldRecord, before: StoredKey | undefined, reply: TableReply): Answer {
    if (reply.fence === undefined) {
      const { remainingMs, rank, otherKind, late } = reply;
      const isUndecided = otherKind !== undefined || late === true || state.released.includes(hold.id);
      const busy = { held: false, released: false, fence: 0, remainingMs, rank, epoch: state.epoch };
      return { ...busy, ...(isUndecided && { isUndecided }), ...(otherKind !== undefined && { refused: true }) };
    }
    const { fence } = reply;
    const { place, next } = command;
    if (state.released.includes(hold.id)) {
      throw new Violation(`${hold.id} was granted a lock after its own release`);
    }
    const shared = before?.shared?.holds.some(([, { endsAt }]) => endsAt > this.#clock.at) ? before.shared : undefined;
    if (hold.shares !== undefined && shared) {
      if (fence !== shared.fence) {
        throw new Violation(`${hold.id} shares the key with others: it got another fence`);
      }
      return { held: true, released: false, fence, remainingMs: 0, rank: -1, epoch: state.epoch };
    }
    const grant = before?.grant && before.grant.endsAt > this.#clock.at ? before.grant : undefined;
    if (grant?.owner === hold.owner && before?.holds.some(([id]) => id === hold.id)) {
      if (fence !== grant.fence) {
        throw new Violation(`${hold.id} is in the lock, and asked again: it got another fence`);
      }
    } else {
      // A counter that was lost is made up for by the clock, unless that was set back.
      if (fence <= state.maxFence && (!state.wasFlushed || this.#clock.wall() * 1_000 > state.maxFence)) {
        throw new Violation(`the fence of the grant to ${hold.id} is not above those before it`);
      }
      state.maxFence = Math.max(state.maxFence, fence + hold.fences - 1);
      const released = command.hold;
      // An exchange may overtake those that queue, where the lock was its own.
      const overtakes = next?.mayOvertake && grant && before?.holds.some(([id]) => id === released);
      if (!overtakes && hold.shares === undefined) {
        this.#checkOrder(state, place, before);
      }
    }
    return { held: true, released: false, fence, remainingMs: 0, rank: -1, epoch: state.epoch };
  }

  /** Those that queued before it were gone, or the lock was reserved for it. */
  #checkOrder(state: State, place: string, before: StoredKey | undefined): void {
    const now = this.#clock.at;
    if (!before || before.queueEndsAt <= now || (before.turn && before.turn.endsAt > now && before.turn.place.name === place)) {
      return;
    }
    const reserved = before.turn && before.turn.endsAt > now ? [before.turn.place] : [];
    for (const queued of [...reserved, ...before.queue]) {
      if (queued.name === place) {
        return;
      }
      if (state.processes[numberOf(queued.process)]?.state !== 'crashed') {
        throw new Violation(`a call was granted the lock before the place ${queued.name}, which had queued before it`);
      }
    }
  }

  #load({ stored, now, aheadMs }: State): OpenTable {
    this.#clock.at = now + aheadMs;
    const { LockTable, KeyState, SharedHolds } = this.#library;
    const table = new LockTable(this.#clock, {
      turn: ({ name, process }) => {
        const isHeard = this.#state.processes[numberOf(process)]?.state !== 'crashed';
        if (isHeard && this.#state.processes[numberOf(process)]?.state !== 'cut') {
          this.#messages.push({ process, kind: 'turn', place: name, fence: 0 });
        }
        return isHeard ? 1 : 0;
      },
      forced: (process, _key, fence) => void this.#messages.push({ process, kind: 'forced', place: '', fence }),
    });
    for (const { key, queue, queueEndsAt, holds, grant, turn, shared } of stored.keys) {
      const state = new KeyState(this.#clock);
      queue.forEach((place) => state.$queue.set(place.name, place));
      state.$grant = grant && { ...grant, by: '', holds: new Map(holds) };
      state.$turn = turn;
      state.$queueEndsAt = queueEndsAt;
      state.$shared = shared && openShared(new SharedHolds(this.#clock, true), shared);
      table.$keys.set(key, state);
    }
    stored.done.forEach(([hold, answer, until]) => table.$done.$recent.set(hold, { answer, until }));
    table.$done.$changesAt = Infinity;
    table.$fence = stored.fence;
    return table;
  }

  #read(table: OpenTable): Stored {
    const keys: StoredKey[] = [];
    for (const [key, state] of table.$keys) {
      if (state.tidy()) {
        const { $grant: grant, $turn: turn, $shared: shared } = state;
        keys.push({
          key,
          queue: [...state.$queue.values()],
          queueEndsAt: state.$queueEndsAt,
          holds: [...(grant?.holds ?? [])],
          ...(grant && { grant: { owner: grant.owner, fence: grant.fence, since: grant.since, ttlMs: grant.ttlMs, endsAt: grant.endsAt } }),
          ...(turn && { turn }),
          ...(shared && { shared: storedShared(shared) }),
        });
      }
    }
    const done: (readonly [string, boolean, number])[] = [];
    for (const [hold, { answer, until }] of table.$done.$recent) {
      if (until > this.#clock.at) {
        done.push([hold, answer, until]);
      }
    }
    return { keys, done, fence: table.$fence };
  }
}

/** The fields that the table itself has. */
const FIELDS = new Set(['$clock', '$expires', '$holds', '$claims', '$fence']);

function openShared(shared: OpenShared, { fence, holds, claims, more }: StoredShared): OpenShared {
  shared.$fence = fence;
  holds.forEach(([id, hold]) => shared.$holds.set(id, hold));
  claims.forEach(([name, claim]) => shared.$claims.set(name, claim));
  return Object.assign(shared, Object.fromEntries(more));
}

function storedShared(shared: OpenShared): StoredShared {
  const more = Object.entries(shared).filter(([field]) => !FIELDS.has(field));
  return { fence: shared.$fence, holds: [...shared.$holds], claims: [...shared.$claims], more };
}
