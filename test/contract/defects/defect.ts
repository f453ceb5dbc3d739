import type {
  AcquireReply,
  HoldRecord,
  LockStore,
  Messages,
  Operator,
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

/** Changes what each hold is before it gets to the store. */
export function mapHolds(store: Parts, map: (hold: HoldRecord) => HoldRecord): Partial<Parts> {
  return {
    acquire: (hold, place) => store.acquire(map(hold), place),
    renew: (holds) => store.renew(holds.map(map)),
    release: (hold) => store.release(map(hold)),
    tickets: { join: (hold) => store.tickets.join(map(hold)) },
  };
}

export function mapGrants(store: Parts, map: (fence: number, hold: HoldRecord) => number): Partial<Parts> {
  return {
    acquire: async (hold, place) => {
      const reply = await store.acquire(hold, place);
      return isGrant(reply) ? { fence: map(reply.fence, hold) } : reply;
    },
  };
}

/** Calls back with every grant, by key. */
export function grantsOf(store: Parts): { readonly acquire: LockStore['acquire']; readonly held: Map<string, HoldRecord> } {
  const held = new Map<string, HoldRecord>();
  return {
    held,
    acquire: async (hold, place) => {
      const reply = await store.acquire(hold, place);
      if (isGrant(reply)) {
        held.set(hold.key, { ...hold, fence: reply.fence });
      }
      return reply;
    },
  };
}

/** Changes what is notified of turns. */
export function mapTurns(store: Parts, map: (listener: TurnListener) => TurnListener): Partial<Parts> {
  return { turns: { ...store.turns, onTurn: (listener, until) => store.turns.onTurn(map(listener), until) } };
}

/** Changes what a search finds. */
export function mapSearch(store: Parts, search: Parts['operator']['search']): Partial<Parts> {
  return { operator: { ...store.operator, search } };
}
