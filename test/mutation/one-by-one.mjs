// The tests that test/support/side-by-side.ts declares, for mutants: each test runs by itself, so that it fails for the
// code that it covers.
import { test } from './harness.mjs';

export function sideBySide({ prepare = async () => undefined } = {}) {
  return (name, body) => test(name, async () => body(await prepare()));
}
