import { checkState, Progress } from './checks.js';
import { digestOf, encode } from './encoding.js';
import { Moves } from './moves.js';
import type { Scope } from './scope.js';
import type { Server } from './server.js';
import { Seen } from './seen.js';
import { copyOf, initialState, type State } from './state.js';
import { Violation, type Step } from './violation.js';

export interface Exploration {
  readonly states: number;
  readonly steps: number;
  /** Every state of which the shortest way is no longer than this was looked at. */
  readonly depth: number;
  /** Whether there are no others. */
  readonly isComplete: boolean;
  /** The longest time until all calls had their turn, from whichever state. */
  readonly longestMs: number;
  readonly boundMs: number;
  readonly violation?: { readonly what: string; readonly way: readonly Step[] };
}

interface Reached {
  readonly state: State;
  readonly number: number;
}

/**
 * Looks at every state that can be reached within a scope, breadth first, until there is none left, or one breaks a
 * promise.
 */
export function explore(scope: Scope, server: Server, mostStates: number): Exploration {
  const moves = new Moves(scope, server);
  const progress = new Progress(scope, moves);
  const seen = new Seen(mostStates);
  const initial = initialState(scope);
  seen.add(digestOf(encode(initial)), -1, 0);
  let layer: Reached[] = [{ state: initial, number: 0 }];
  let steps = 0;
  let depth = 0;
  const result = (violation?: Exploration['violation'], isComplete = false): Exploration => ({
    states: seen.size,
    steps,
    depth,
    isComplete,
    longestMs: progress.longestMs,
    boundMs: progress.boundMs,
    ...(violation && { violation }),
  });
  while (layer.length > 0) {
    const next: Reached[] = [];
    for (const { state, number } of layer) {
      for (const [choice, move] of moves.from(state).entries()) {
        steps++;
        const reached = copyOf(state);
        try {
          move.run(reached);
          checkState(reached);
          const digest = digestOf(encode(reached));
          if (!seen.add(digest, number, choice)) {
            continue;
          }
          progress.check(reached, digest);
        } catch (error) {
          if (!(error instanceof Violation)) {
            throw error;
          }
          const way = [...wayTo([...seen.wayTo(number), choice], initial, moves), ...error.after];
          return result({ what: error.message, way });
        }
        next.push({ state: reached, number: seen.size - 1 });
      }
      if (seen.size >= mostStates) {
        return result();
      }
    }
    depth++;
    layer = next;
  }
  return result(undefined, true);
}

/** Takes the choices again, and tells what they were. */
function wayTo(choices: readonly number[], initial: State, moves: Moves): Step[] {
  let state = initial;
  return choices.map((choice) => {
    const move = moves.from(state)[choice];
    const { now } = state;
    state = copyOf(state);
    try {
      move?.run(state);
    } catch {
      // The last step is the one that breaks a promise.
    }
    return { now, who: move?.who ?? '', what: move?.what ?? '' };
  });
}
