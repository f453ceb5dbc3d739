import type {
  AcquireReply,
  Busy,
  FoundLock,
  HoldRecord,
  LockStore,
  Messages,
  Operator,
  Place,
  StoredLock,
  Tickets,
  TurnListener,
  Turns,
} from '../../../lib/core/seam/lock-store';
import type { MemoryLockStore } from '../../../lib/memory/memory-lock-store';

/** A store whose members a defect may replace. */
export type Parts = LockStore & {
  readonly turns: Turns;
  readonly tickets: Tickets;
  readonly operator: Required<Operator>;
  readonly messages: Messages;
  readonly health: NonNullable<LockStore['health']>;
};

/** A change that breaks a rule, and the rule that has to notice. */
export interface Defect {
  readonly rule: string;
  readonly change: (store: Parts) => Partial<Parts>;
}

/** The memory store as an object whose parts can be replaced. */
export function partsOf(store: MemoryLockStore): Parts {
  return {
    expires: store.expires,
    reservesFences: store.reservesFences,
    shared: store.shared,
    permits: store.permits,
    acquire: (hold, place) => store.acquire(hold, place),
    renew: (holds) => store.renew(holds),
    release: (hold) => store.release(hold),
    close: () => store.close(),
    turns: {
      exchange: (hold, next, place, mayOvertake) => store.exchange(hold, next, place, mayOvertake),
      leave: (key, name) => store.leave(key, name),
      onTurn: (listener, until) => store.onTurn(listener, until),
    },
    tickets: { join: (hold) => store.join(hold) },
    health: async () => ({ latencyMs: 0, clockSkewMs: 0 }),
    operator: {
      inspect: (key) => store.inspect(key),
      forceRelease: (key, fence) => store.forceRelease(key, fence),
      onForced: (listener, until) => store.onForced(listener, until),
      search: (prefix) => store.search(prefix),
    },
    messages: {
      process: store.process,
      send: (text, process) => store.send(text, process),
      onMessage: (listener, until) => store.onMessage(listener, until),
    },
  };
}

export const isGrant = (reply: AcquireReply): reply is { readonly fence: number } => reply.fence !== undefined;

export const BUSY = { remainingMs: 1, holder: { by: '', heldMs: 0 } };

/** Changes what each hold is before it gets to the store. */
export function mapHolds(store: Parts, map: (hold: HoldRecord) => HoldRecord): Partial<Parts> {
  return {
    acquire: (hold, place) => store.acquire(map(hold), place),
    renew: (holds) => store.renew(holds.map(map)),
    release: (hold) => store.release(map(hold)),
    tickets: { join: (hold) => store.tickets.join(map(hold)) },
  };
}

/** Changes the answer to each acquire. */
export function mapReplies(
  store: Parts,
  map: (reply: AcquireReply, hold: HoldRecord, place?: Place) => AcquireReply | Promise<AcquireReply>,
): Partial<Parts> {
  return { acquire: async (hold, place) => map(await store.acquire(hold, place), hold, place) };
}

/** Changes the answer to each acquire that finds the lock busy. */
export function mapBusy(
  store: Parts,
  map: (reply: Busy, hold: HoldRecord, place?: Place) => AcquireReply | Promise<AcquireReply>,
): Partial<Parts> {
  return mapReplies(store, (reply, hold, place) => (isGrant(reply) ? reply : map(reply, hold, place)));
}

/** Changes the fence of each grant. */
export function mapGrants(store: Parts, map: (fence: number, hold: HoldRecord) => number | Promise<number>): Partial<Parts> {
  return mapReplies(store, async (reply, hold) => (isGrant(reply) ? { fence: await map(reply.fence, hold) } : reply));
}

/** Grants what is busy, where inspect showed nobody in it just before, and `isWrong`. */
export function mapFree(
  store: Parts,
  isWrong: (reply: Busy, place?: Place) => boolean,
  between: () => Promise<unknown> = async () => undefined,
): Partial<Parts> {
  return {
    acquire: async (hold, place) => {
      const isFree = (await store.operator.inspect(hold.key)) === null;
      await between();
      const reply = await store.acquire(hold, place);
      return isFree && !isGrant(reply) && isWrong(reply, place) ? { fence: Date.now() * 1_000 } : reply;
    },
  };
}

/** The grants of a store: the last one of each key, and all of them by their holds. */
interface Grants {
  readonly held: ReadonlyMap<string, HoldRecord>;
  readonly seen: ReadonlyMap<string, HoldRecord>;
  /** Asks the store, and takes note of what it grants. */
  readonly acquire: LockStore['acquire'];
}

/** A change that knows what the store has granted. */
export function withGrants(store: Parts, change: (grants: Grants) => Partial<Parts>): Partial<Parts> {
  const held = new Map<string, HoldRecord>();
  const seen = new Map<string, HoldRecord>();
  const acquire: LockStore['acquire'] = async (hold, place) => {
    const reply = await store.acquire(hold, place);
    if (isGrant(reply)) {
      held.set(hold.key, { ...hold, fence: reply.fence });
      seen.set(hold.id, { ...hold, fence: reply.fence });
    }
    return reply;
  };
  return { acquire, ...change({ held, seen, acquire }) };
}

/** A change that knows the names of the places that asked for a key, each as often as it asked. */
export function withPlaces(store: Parts, change: (namesOf: (key: string) => readonly string[]) => Partial<Parts>): Partial<Parts> {
  const names = new Map<string, string[]>();
  return {
    acquire: (hold, place) => {
      names.set(hold.key, [...(names.get(hold.key) ?? []), ...(place ? [place.name] : [])]);
      return store.acquire(hold, place);
    },
    ...change((key) => names.get(key) ?? []),
  };
}

/** Changes a part of what orders the turns. */
export function mapOrder(store: Parts, part: Partial<Turns>): Partial<Parts> {
  return { turns: { ...store.turns, ...part } };
}

/** Changes a part of what operators use. */
export function mapOperator(store: Parts, part: Partial<Operator>): Partial<Parts> {
  return { operator: { ...store.operator, ...part } };
}

/** Changes what inspect shows of a lock. */
export function mapShown(store: Parts, map: (lock: StoredLock, key: string) => StoredLock): Partial<Parts> {
  return mapOperator(store, {
    inspect: async (key) => {
      const lock = await store.operator.inspect(key);
      return lock && map(lock, key);
    },
  });
}

/** Changes what a search shows of each lock that it finds. */
export function mapFound(store: Parts, map: (lock: FoundLock) => FoundLock): Partial<Parts> {
  return mapOperator(store, {
    async *search(prefix) {
      for await (const part of store.operator.search(prefix)) {
        yield part.map(map);
      }
    },
  });
}

/** Changes what is notified of turns. */
export function mapTurns(store: Parts, map: (listener: TurnListener) => TurnListener): Partial<Parts> {
  return mapOrder(store, { onTurn: (listener, until) => store.turns.onTurn(map(listener), until) });
}
