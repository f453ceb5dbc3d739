// Loads TypeScript as test/support/typescript.mjs does, with the harness in place of jest.
export { load } from '../support/typescript-hooks.mjs';
import { resolve as resolveTypeScript } from '../support/typescript-hooks.mjs';

const HARNESS = new URL('./harness.mjs', import.meta.url).href;

export const resolve = (specifier, context, next) =>
  specifier === '@jest/globals' ? { url: HARNESS, shortCircuit: true } : resolveTypeScript(specifier, context, next);
