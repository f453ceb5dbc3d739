/**
 * The functions of a test runner that the suite uses, as jest, vitest and `node:test` have them. The suite brings its
 * assertions with it, since `node:test` has none, and opens and closes its stores itself, so that it needs no hooks.
 */
export interface TestRunner {
  /** Groups tests. */
  readonly describe: (name: string, body: () => void) => unknown;
  /** Defines a test, which fails when its body rejects; `skip` defines one that is reported as skipped. */
  readonly test: ((name: string, body: () => Promise<void>) => unknown) & {
    readonly skip: (name: string, body: () => Promise<void>) => unknown;
  };
}
