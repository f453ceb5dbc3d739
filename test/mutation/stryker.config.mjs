/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  mutate: ['lib/core/**/*.ts', 'lib/locks.ts', 'lib/leader/**/*.ts', 'lib/operate/peers/**/*.ts', 'lib/kit/**/*.ts'],
  plugins: ['./test/mutation/runner.mjs'],
  testRunner: 'one-process',
  coverageAnalysis: 'perTest',
  // Code that a module runs as it is loaded needs a process of its own for each mutant, and all tests.
  ignoreStatic: true,
  concurrency: 2,
  // Code that the watchdog ends leaves hooks behind.
  testRunnerNodeArgs: ['--no-force-async-hooks-checks'],
  timeoutMS: 3_000,
  timeoutFactor: 1.2,
  dryRunTimeoutMinutes: 15,
  ignorePatterns: ['/.cache', '/dist', '/bench', '/docs', '/examples', '/sample-app', '/etc'],
  tempDirName: '.cache/mutation/sandboxes',
  incremental: true,
  incrementalFile: '.cache/mutation/results.json',
  reporters: ['clear-text', 'progress', 'html'],
  htmlReporter: { fileName: '.cache/mutation/report.html' },
  clearTextReporter: { allowColor: false, allowEmojis: false, logTests: false },
};
