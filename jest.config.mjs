/** @type {import('jest').Config} */
export default {
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '^.+\\.ts$': '@swc/jest' },
  moduleNameMapper: {
    '^nestjs-distributed-lock$': '<rootDir>/lib/index.ts',
    '^nestjs-distributed-lock/postgres$': '<rootDir>/lib/stores/postgres/index.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  testEnvironment: 'node',
  testMatch: ['<rootDir>/test/**/*.spec.ts', '<rootDir>/sample-app/**/*.spec.ts'],
  testPathIgnorePatterns: ['/node_modules/', '/dist/'],
  modulePathIgnorePatterns: ['/dist/'],
  testTimeout: 20_000,
  // One at a time: tests of time do not share the machine with tests of packages.
  maxWorkers: 1,
  testSequencer: '<rootDir>/test/sequencer.mjs',
  reporters: ['default', '<rootDir>/test/summary-reporter.mjs'],
};
