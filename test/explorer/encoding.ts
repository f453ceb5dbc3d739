import { hash } from 'node:crypto';
import { START_MS } from './scope.js';
import { isGone, type Lease, type State, type StoredShared, type Transit } from './state.js';

/** The name that a name counts as. */
type Rename = (name: string) => string;
/** The number that a fence counts as. */
type Fences = (fence: number) => number;

/**
 * A text that two states share if they differ in nothing that matters. Times count from now. Fences count by their
 * order where the clock has passed them. Processes, which are all alike, are in the order of their texts.
 */
export function encode(state: State): string {
  const own = state.processes.map((_, at) => encodeProcess(state, at, (name) => name.replace(/[0-9]/, '*')));
  const order = own.map((_, at) => at).toSorted((a, b) => ((own[a] as string) < (own[b] as string) ? -1 : 1));
  let least = '';
  for (const permutation of permutationsOf(order, own)) {
    const text = encodeAs(state, permutation);
    if (least === '' || text < least) {
      least = text;
    }
  }
  return least;
}

/** The orders in which only processes trade places that look alike. */
function permutationsOf(order: readonly number[], own: readonly string[]): readonly (readonly number[])[] {
  if (order.length === 1 || new Set(own).size === own.length) {
    return [order];
  }
  return allOrders(order.length)
    .map((places) => places.map((at) => order[at] as number))
    .filter((one) => one.every((at, place) => own[at] === own[order[place] as number]));
}

/** Every order of the numbers below `count`. */
function allOrders(count: number): readonly (readonly number[])[] {
  return count === 0
    ? [[]]
    : allOrders(count - 1).flatMap((order) => Array.from({ length: count }, (_, at) => order.toSpliced(at, 0, count - 1)));
}

function encodeAs(state: State, order: readonly number[]): string {
  const place: number[] = [];
  order.forEach((at, index) => (place[at] = index));
  // `h01a2`: a kind of name, the process, the call, the key and a number.
  const rename = (name: string): string => (name === '' ? '' : `${name[0]}${place[Number(name[1])]}${name.slice(2)}`);
  const { now, aheadMs, stored } = state;
  const clock = now + aheadMs;
  const fences = fencesOf(state);
  const text = order.map((at) => encodeProcess(state, at, rename, fences));
  const transits = state.transits.map((transit) => {
    const lane = transit.isLate ? '' : String(state.transits.filter((one) => isSameLane(one, transit)).indexOf(transit));
    return `${lane}${encodeTransit(transit, now, clock, place, rename, fences)}`;
  });
  text.push(transits.toSorted().join(' '));
  for (const { key, queue, queueEndsAt, holds, grant, turn, shared } of stored.keys) {
    text.push(`${key}[${queue.map(({ name }) => rename(name)).join()}]${queue.length > 0 ? queueEndsAt - clock : ''}`);
    text.push(holds.map(([hold, process]) => `${rename(hold)}${rename(process)}`).join());
    text.push(grant ? `${rename(grant.owner)},${fences(grant.fence)},${grant.endsAt - clock},${grant.ttlMs}` : '');
    text.push(turn ? `${rename(turn.place.name)},${turn.endsAt - clock}` : '');
    if (shared) {
      text.push(encodeShared(shared, clock, rename, fences));
    }
  }
  text.push(
    stored.done
      .map(([hold, answer, until]) => `${rename(hold)}${answer ? '+' : '-'}${until - clock}`)
      .toSorted()
      .join(),
  );
  text.push(`${fences(stored.fence)},${fences(state.maxFence)},${state.faultsLeft},${state.wasSetBack ? 1 : 0}${state.wasFlushed ? 1 : 0}`);
  text.push(state.released.map(rename).toSorted().join());
  return text.join('|');
}

function encodeShared({ fence, holds, claims, more }: StoredShared, clock: number, rename: Rename, fences: Fences): string {
  const those = holds.map(
    ([id, { owner, process, shares, endsAt, ttlMs }]) =>
      `${rename(id)}${rename(owner)}${rename(process)}${shares},${endsAt - clock},${ttlMs}`,
  );
  const reserved = claims.map(([name, { endsAt }]) => `${rename(name)},${endsAt - clock}`);
  return `${fences(fence)}<${those.toSorted().join(';')}<${reserved.toSorted().join(';')}<${more.join(';')}`;
}

function isSameLane(one: Transit, other: Transit): boolean {
  return !one.isLate && one.process === other.process && one.phase === other.phase;
}

function encodeProcess(state: State, at: number, rename: Rename, fences = (fence: number): number => (fence > 0 ? 1 : 0)): string {
  const process = state.processes[at] as State['processes'][number];
  if (isGone(process)) {
    return `${process.sendsAgain ? '2' : ''}${process.state}`;
  }
  const { now, epoch } = state;
  const calls = process.calls.map(({ stage, gaveUp, leases }) => {
    return `${stage}${gaveUp ? '!' : ''}${leases.map((lease) => encodeLease(lease, now, epoch, rename, fences)).join(';')}`;
  });
  const lines = process.lines.map(
    (line) => `${rename(line.place)}${line.isNotified ? '!' : ''}${line.burst},${line.current},${line.names}`,
  );
  const releases = process.releases.map((one) => {
    const trusted = one.epoch === epoch && one.trustedUntil > now ? one.trustedUntil - now : 0;
    return `${rename(one.hold)}${rename(one.owner)}${one.shares ?? ''}${one.sentAt - now},${one.until - now},${trusted}${one.unanswered ? '*' : ''}${one.firstSentAt === one.sentAt ? '1' : ''}`;
  });
  return `${process.sendsAgain ? '2' : ''}${process.shares ?? ''}${process.state}{${calls.join('/')}{${lines.join('/')}{${releases.toSorted().join('/')}`;
}

function encodeLease(lease: Lease, now: number, epoch: number, rename: Rename, fences: Fences): string {
  const { stage, owner, hold, joins, isUnknown, unanswered, at, renewal, sentAt } = lease;
  if (stage === 'ended' || stage === 'wanted') {
    return stage;
  }
  const names = `${stage}${rename(owner)},${rename(hold)},${fences(joins)}${isUnknown ? '?' : ''}${unanswered ? '*' : ''}${lease.fences}${lease.shares ?? ''}`;
  if (stage !== 'held') {
    return `${names},${stage === 'line' ? '' : at - now}`;
  }
  const current = lease.epoch === epoch ? '=' : '<';
  return `${names},${fences(lease.fence)},${fences(lease.stored)},${sentAt - now},${renewal.isSent ? '>' : ''}${renewal.at - now}${current}`;
}

function encodeTransit(transit: Transit, now: number, clock: number, place: readonly number[], rename: Rename, fences: Fences): string {
  const { phase, process, kind, key, hold, owner, latest, next, answer, sentAt, isLate, isCopy } = transit;
  const flags = `${phase}${place[process]}${kind}${key}${isLate ? '~' : ''}${isCopy ? '2' : ''}${transit.unanswered ? '*' : ''}${transit.shares ?? ''}`;
  const names = `${rename(hold)},${rename(owner)},${rename(transit.place)},${next ? `${rename(next.hold)}${rename(next.owner)}${next.mayOvertake}` : ''}`;
  const reply =
    answer && `${answer.held},${answer.released},${fences(answer.fence)},${answer.remainingMs},${answer.rank}${answer.refused ? '!' : ''}`;
  return `${flags}${names},${fences(transit.fence)},${transit.fences},${sentAt - now},${latest - clock},${reply ?? ''}`;
}

/** Fences that the clock has passed count by their order, others by how far they are ahead of it. */
function fencesOf(state: State): Fences {
  const clock = (START_MS + state.now + state.aheadMs) * 1_000;
  const all = new Set<number>([state.stored.fence, state.maxFence]);
  for (const { grant, shared } of state.stored.keys) {
    all.add(grant?.fence ?? 0);
    all.add(shared?.fence ?? 0);
  }
  for (const { fence, answer } of state.transits) {
    all.add(fence);
    all.add(answer?.fence ?? 0);
  }
  for (const { calls } of state.processes) {
    for (const { leases } of calls) {
      leases.forEach(({ fence, stored, joins }) => all.add(fence).add(stored).add(joins));
    }
  }
  const ranks = new Map([...all].toSorted((a, b) => a - b).map((fence, rank) => [fence, rank]));
  return (fence) => (fence === 0 ? 0 : fence >= clock ? 1_000 + fence - clock : (ranks.get(fence) ?? 0));
}

/** 51 bits, and above 0. */
export function digestOf(text: string): number {
  const digest = hash('md5', text, 'buffer');
  return digest.readUIntBE(0, 6) * 8 + ((digest[6] as number) & 7) + 1;
}
