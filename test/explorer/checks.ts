import { digestOf, encode } from './encoding.js';
import type { Moves } from './moves.js';
import { CLAIM_MS, RECHECK_MS } from '../../lib/kit/protocol.js';
import { CLOCK_STEP_MS, STEP_MS, TTL_MS, type Scope } from './scope.js';
import { checkShared, checkTrusted, trustedLeases } from './sharing.js';
import { copyOf, isGone, type State, type StoredKey } from './state.js';
import { Violation, type Step } from './violation.js';

/**
 * At most one owner trusts its lease, or as many as may share the key, and no lease in the store is longer than one
 * that was asked for.
 */
export function checkState(state: State): void {
  for (const leases of trustedLeases(state).values()) {
    checkTrusted(leases);
  }
  const clock = state.now + state.aheadMs;
  for (const stored of state.stored.keys) {
    const { key, grant } = stored;
    checkShared(stored, clock, state.wasSetBack);
    if (grant && grant.endsAt - clock > TTL_MS && !state.wasSetBack) {
      throw new Violation(`the lease on ${key} is longer than any that was asked for`);
    }
  }
}

/**
 * The guarantees where nothing goes wrong any more: every call gets its turn, and every lock is free, within a bound.
 */
export class Progress {
  readonly #moves: Moves;
  readonly #scope: Scope;
  /** How long it took from states that were seen, in milliseconds, by the digests of what they are. */
  readonly #known = new Map<number, number>();
  #longestMs = 0;

  constructor(scope: Scope, moves: Moves) {
    this.#moves = moves;
    this.#scope = scope;
  }

  get longestMs(): number {
    return this.#longestMs;
  }

  get boundMs(): number {
    return boundOf(this.#scope, this.#scope.faults);
  }

  /** Throws where a state, of that digest, leads nowhere. */
  check(from: State, digest: number): void {
    const after: Step[] = [];
    try {
      this.#run(from, digest, after);
    } catch (error) {
      if (error instanceof Violation) {
        error.after = after;
      }
      throw error;
    }
  }

  #run(from: State, digestOfFrom: number, after: Step[]): void {
    const boundMs = boundOf(this.#scope, this.#scope.faults - from.faultsLeft);
    const passed: { readonly digest: number; readonly now: number }[] = [];
    let state = from;
    let leftMs = 0;
    for (let digest = digestOfFrom; ; digest = digestOf(encode(state))) {
      const known = this.#known.get(digest);
      if (known !== undefined) {
        leftMs = known;
        break;
      }
      passed.push({ digest, now: state.now });
      if (isDone(state)) {
        break;
      }
      if (state.now - from.now > boundMs) {
        throw new Violation(`${whatIsLeft(state)} after ${state.now - from.now} ms in which nothing went wrong`);
      }
      const { who, what, run } = this.#moves.fair(state);
      after.push({ now: state.now, who, what });
      state = copyOf(state);
      run(state);
      checkState(state);
    }
    for (const { digest, now } of passed) {
      this.#known.set(digest, leftMs + state.now - now);
    }
    const tookMs = leftMs + state.now - from.now;
    this.#longestMs = Math.max(this.#longestMs, tookMs);
    if (tookMs > boundMs) {
      throw new Violation(`it takes ${tookMs} ms until every call had its turn and every lock is free`);
    }
  }
}

/**
 * The bound: at once, where nothing went wrong, since each release wakes the next. Otherwise a lease; a claim window
 * and the recheck after it for each process that may be gone or slow; and the latest recheck.
 */
function boundOf({ processes, keys, kinds }: Scope, faults: number): number {
  if (faults === 0) {
    return 0;
  }
  const clockMs = kinds.includes('back') ? faults * CLOCK_STEP_MS : 0;
  return keys * (2 * TTL_MS + processes * (CLAIM_MS + STEP_MS) + RECHECK_MS.late + clockMs);
}

function isDone({ processes, transits, stored }: State): boolean {
  const isQuiet = processes.every(
    ({ state, calls, releases }) =>
      state !== 'up' || (releases.length === 0 && calls.every(({ stage }) => stage === 'new' || stage === 'over')),
  );
  const isSilent = transits.every(({ phase, process }) => phase !== 'command' && processes[process]?.state === 'stopped');
  return isQuiet && isSilent && stored.keys.every((key) => !isHeld(key) && !key.turn && !key.shared?.claims.length);
}

const isHeld = ({ grant, shared }: StoredKey): boolean => grant !== undefined || (shared !== undefined && shared.holds.length > 0);

function whatIsLeft({ processes, stored }: State): string {
  const waiting = processes.flatMap((process, at) =>
    isGone(process) || process.state === 'stopped'
      ? []
      : process.calls.filter(({ stage }) => stage === 'entering').map(() => `a call of p${at} waits`),
  );
  const held = stored.keys.filter(isHeld).map(({ key }) => `${key} is held`);
  return [...waiting, ...held].join(', ') || 'a release is repeated';
}
