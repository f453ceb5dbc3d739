// Loads TypeScript as test/support/typescript.mjs does, with the harness in place of jest, and without what takes real
// time.
export { load } from '../support/typescript-hooks.mjs';
import { resolve as resolveTypeScript } from '../support/typescript-hooks.mjs';

const urlOf = (file) => new URL(file, import.meta.url).href;
const HARNESS = urlOf('harness.mjs');
const ONE_BY_ONE = urlOf('one-by-one.mjs');
const TIMERS = urlOf('timers.mjs');
/** Who sleeps in the time that is played. */
const SLEEPERS = [urlOf('../'), urlOf('../../lib/contract/')];

function insteadOf(specifier, parent) {
  if (specifier === '@jest/globals') {
    return HARNESS;
  }
  if (specifier.endsWith('/side-by-side')) {
    return ONE_BY_ONE;
  }
  const sleeps = specifier === 'node:timers/promises' && SLEEPERS.some((folder) => parent?.startsWith(folder));
  return sleeps ? TIMERS : undefined;
}

export const resolve = (specifier, context, next) => {
  const url = insteadOf(specifier, context.parentURL);
  return url ? { url, shortCircuit: true } : resolveTypeScript(specifier, context, next);
};
