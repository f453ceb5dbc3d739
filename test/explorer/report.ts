import type { Exploration } from './explorer.js';
import type { Scope } from './scope.js';
import type { Step } from './violation.js';

/** One line on what was covered; and where a promise is broken, the shortest way there, as a table. */
export function reportOf({ name, faults }: Scope, exploration: Exploration, tookMs: number): string {
  const { states, steps, depth, isComplete, longestMs, boundMs, violation } = exploration;
  const extent = isComplete ? 'all of them' : `all that are within ${depth} steps`;
  const figures = `${count(states)} states (${extent}) by ${count(steps)} steps, up to ${faults} faults, in ${Math.round(tookMs / 1_000)} s`;
  const progress = `every call had its turn within ${longestMs} ms of ${boundMs}`;
  return `${name}: ${figures}; ${violation ? `VIOLATION\n${wayOf(violation)}` : progress}`;
}

function wayOf({ what, way }: { readonly what: string; readonly way: readonly Step[] }): string {
  const lines = way.map(({ now, who, what: did }) => `${String(now).padStart(8)} ms  ${who.padEnd(8)}  ${did}`);
  return `${lines.join('\n')}\n  ${way.length} steps: ${what}`;
}

function count(number: number): string {
  return number.toLocaleString('en');
}
