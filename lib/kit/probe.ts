import type { MemberHealth, StoreHealth } from '../core/words/lock-health.js';

/**
 * How long a server may take to answer a probe, in milliseconds: each server has answered or not within the second that
 * core waits.
 */
export const PROBE_MS = 750;

/**
 * The answer of a server: the time of its clock, in ms since 1970; its product; and why it takes no locks, if it takes
 * none.
 */
export interface ProbeAnswer {
  readonly serverMs: number;
  readonly server?: StoreHealth['server'];
  readonly refuses?: StoreHealth['refuses'];
}

/** The facts that the answer of one server shows. */
export interface Probe extends Omit<ProbeAnswer, 'serverMs'> {
  readonly latencyMs: number;
  readonly clockSkewMs: number;
}

/** Asks a server, and compares its clock with the clock here. */
export async function probe(ask: () => Promise<ProbeAnswer>): Promise<Probe> {
  const [wallAt, sentAt] = [Date.now(), performance.now()];
  const { serverMs, server, refuses } = await ask();
  const latencyMs = performance.now() - sentAt;
  // The server read its clock at an unknown moment in between.
  return { latencyMs, clockSkewMs: serverMs - wallAt - latencyMs / 2, server, refuses };
}

/**
 * The health of each of several servers; undefined for a single one. `votes` says whose votes count where servers vote.
 * A server that is read-only or full has no vote: it refuses to write one, though it voted before.
 */
export function membersOf(
  answers: readonly PromiseSettledResult<Probe>[],
  votes?: readonly boolean[],
): readonly MemberHealth[] | undefined {
  return answers.length > 1 ? answers.map((answer, at) => memberOf(answer, votes?.[at])) : undefined;
}

function memberOf(answer: PromiseSettledResult<Probe>, votes: boolean | undefined): MemberHealth {
  const reachable = answer.status === 'fulfilled';
  const refuses = reachable ? answer.value.refuses : undefined;
  return { reachable, voting: votes === undefined ? undefined : votes && reachable && refuses === undefined, refuses };
}

/** The probes that were answered. */
export function answeredOf(answers: readonly PromiseSettledResult<Probe>[]): readonly Probe[] {
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
}

/**
 * The slowest answer, the clock that is furthest off, the products, and why no server takes a lock, if none does;
 * nothing where no server answered.
 */
export function worstOf(probes: readonly Probe[]): Partial<Probe> {
  const [first] = probes;
  return first
    ? {
        latencyMs: Math.max(...probes.map(({ latencyMs }) => latencyMs)),
        clockSkewMs: probes.reduce((worst, { clockSkewMs: ms }) => (Math.abs(ms) > Math.abs(worst) ? ms : worst), first.clockSkewMs),
        server: [...new Set(probes.flatMap(({ server }) => server ?? []))].join(', ') || undefined,
        refuses: probes.every(({ refuses }) => refuses) ? first.refuses : undefined,
      }
    : {};
}
