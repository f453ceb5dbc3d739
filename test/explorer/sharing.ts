import type { Shares } from '../../lib/core/seam/lock-store.js';
import { CLAIM_MS } from '../../lib/kit/protocol.js';
import { sharesOfPlace } from '../../lib/core/seam/shares.js';
import { TTL_MS } from './scope.js';
import { isTrusted, type Lease, type State, type StoredKey, type StoredShared, type Transit } from './state.js';
import { Violation } from './violation.js';

const NOBODY: StoredShared = { fence: 0, holds: [], claims: [], more: [] };

/** Whether one more may share a key with others, all of whom let each other in. */
export function mayShare(shares: Shares | undefined, others: readonly Shares[]): boolean {
  if (shares === undefined) {
    return others.length === 0;
  }
  if (shares === 'read') {
    return others.every((other) => other === 'read');
  }
  const counts = others.filter((other) => typeof other === 'number');
  return counts.length === others.length && others.length < Math.min(shares, ...counts);
}

const may = (all: readonly (Shares | undefined)[]): boolean => {
  const [last, ...others] = all;
  return all.length < 2 || (others.every((other) => other !== undefined) && mayShare(last, others));
};

/** Leases of different owners that are trusted at the same time share their key. */
export function checkTrusted(leases: readonly Lease[]): void {
  const [first] = leases;
  if (!first || leases.every(({ owner, shares }) => owner === first.owner && shares === first.shares && typeof shares !== 'number')) {
    return;
  }
  if (!may(leases.map(({ shares }) => shares))) {
    throw new Violation(`${leases.map(({ hold }) => hold).join(' and ')} trust their leases on ${first.key}, and may not together`);
  }
  if (leases.some(({ stored }) => stored !== first.stored)) {
    throw new Violation(`${leases.map(({ hold }) => hold).join(' and ')} share ${first.key} at different fences`);
  }
}

/** The leases that are trusted, by their keys. */
export function trustedLeases({ processes, now, epoch }: State): ReadonlyMap<string, readonly Lease[]> {
  const trusted = new Map<string, Lease[]>();
  for (const lease of processes.flatMap(({ calls }) => calls.flatMap(({ leases }) => leases))) {
    if (isTrusted(lease, now) && lease.epoch === epoch) {
      trusted.set(lease.key, [...(trusted.get(lease.key) ?? []), lease]);
    }
  }
  return trusted;
}

/** The holds and the reserved places of a key fit together, and none of them is over or lasts longer than was asked. */
export function checkShared({ key, grant, turn, shared = NOBODY }: StoredKey, clock: number, wasSetBack: boolean): void {
  const { holds, claims } = shared;
  if ((grant ?? turn) && holds.length + claims.length > 0) {
    throw new Violation(`${key} is a writer's, and others share it`);
  }
  if (!may([...holds.map(([, { shares }]) => shares), ...claims.map(([name]) => sharesOfPlace(name))])) {
    throw new Violation(`more share ${key}, or have room reserved, than may`);
  }
  const ends = [
    ...holds.map(([id, { endsAt }]) => [id, endsAt, TTL_MS] as const),
    ...claims.map(([name, { endsAt }]) => [name, endsAt, CLAIM_MS] as const),
  ];
  for (const [name, endsAt, mostMs] of ends) {
    if (endsAt <= clock) {
      throw new Violation(`${name} is over, and stays in ${key}`);
    }
    if (endsAt - clock > mostMs && !wasSetBack) {
      throw new Violation(`${name} is in ${key} for longer than was asked for`);
    }
  }
}

/** A key before a command and after it. What was over before it is not in either. */
export interface Change {
  readonly before: StoredKey | undefined;
  readonly after: StoredKey | undefined;
  readonly wasSetBack: boolean;
}

/** A command changes nothing of other holds and places, wakes those at the head that fit, and keeps their order. */
export function checkChange(change: Change, { kind, hold, key }: Pick<Transit, 'kind' | 'hold' | 'key'>): void {
  const { before, after } = change;
  const [were, are] = [before?.shared ?? NOBODY, after?.shared ?? NOBODY];
  const [old, now] = [new Map(were.holds), new Map(are.holds)];
  for (const [id, { endsAt }] of now) {
    const was = old.get(id);
    if (!was && (id !== hold || (kind !== 'acquire' && kind !== 'join'))) {
      throw new Violation(`a ${kind} let ${id} in`);
    }
    if (was && id !== hold && (endsAt > was.endsAt || (endsAt < was.endsAt && !change.wasSetBack))) {
      throw new Violation(`a ${kind} of ${hold} changed the lease of ${id}`);
    }
  }
  for (const id of old.keys()) {
    if (!now.has(id) && kind !== 'forced' && (id !== hold || kind !== 'release')) {
      throw new Violation(`a ${kind} of ${hold} took ${id} out`);
    }
  }
  checkOrderOfClaims(change, key);
  const hasMadeRoom = now.size < old.size || (before?.grant !== undefined && !after?.grant) || (kind === 'leave' && are.holds.length > 0);
  const [head] = after?.queue ?? [];
  if (head && hasMadeRoom && fits(sharesOfPlace(head.name), after)) {
    throw new Violation(`a ${kind} made room for the place ${head.name}, which was not woken`);
  }
}

/** Nobody has room reserved before a place that queued before it. */
function checkOrderOfClaims({ before, after }: Change, key: string): void {
  const had = new Set(before?.shared?.claims.map(([name]) => name));
  for (const [name] of after?.shared?.claims ?? []) {
    const overtaken = had.has(name) ? undefined : waitingBefore(name, before, after);
    if (overtaken) {
      throw new Violation(`${key} was reserved for the place ${name} before ${overtaken}, which had queued before it`);
    }
  }
}

/** A hold is granted room only where nobody waits who queued before its place. */
export function checkOrderOfShared(place: string, { before, after }: Change): void {
  const overtaken = waitingBefore(place, before, after);
  if (overtaken) {
    throw new Violation(`a call at ${place} was let in before the place ${overtaken}, which had queued before it`);
  }
}

/** A call waits only where there is no room, or somebody is before it. */
export function checkBusy(place: string, shares: Shares | undefined, { before, after }: Change): void {
  const isFirst = after?.queue.every(({ name }) => name === place) === true && before?.queue.every(({ name }) => name === place) !== false;
  if (isFirst && fits(shares, after)) {
    throw new Violation(`a call at ${place} waits, although there is room and nobody is before it`);
  }
}

/** The first place that queued before this one, and still does. */
function waitingBefore(place: string, before: StoredKey | undefined, after: StoredKey | undefined): string | undefined {
  const queue = before?.queue.map(({ name }) => name) ?? [];
  const at = queue.indexOf(place);
  const first = at < 0 ? queue : queue.slice(0, at);
  const isReserved = before?.shared?.claims.some(([name]) => name === place) === true;
  return isReserved ? undefined : first.find((name) => after?.queue.some((queued) => queued.name === name));
}

/** Whether a hold would fit beside those that are in, or have room reserved. */
function fits(shares: Shares | undefined, stored: StoredKey | undefined): boolean {
  const { holds, claims } = stored?.shared ?? NOBODY;
  const others = [...holds.map(([, hold]) => hold.shares), ...claims.map(([name]) => sharesOfPlace(name) ?? 1)];
  return !stored?.grant && !stored?.turn && mayShare(shares, others);
}
