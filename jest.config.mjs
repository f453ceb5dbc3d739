import { availableParallelism } from 'node:os';

/** @type {import('jest').Config} */
export default {
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '^.+\\.ts$': '@swc/jest' },
  moduleNameMapper: {
    '^nestjs-distributed-lock$': '<rootDir>/lib/index.ts',
    '^nestjs-distributed-lock/mysql$': '<rootDir>/lib/stores/mysql/index.ts',
    '^nestjs-distributed-lock/otel$': '<rootDir>/lib/otel/index.ts',
    '^nestjs-distributed-lock/page$': '<rootDir>/console/page/index.ts',
    '^nestjs-distributed-lock/postgres$': '<rootDir>/lib/stores/postgres/index.ts',
    '^nestjs-distributed-lock/prometheus$': '<rootDir>/lib/prometheus/index.ts',
    '^nestjs-distributed-lock/store-contract$': '<rootDir>/lib/store-contract/index.ts',
    '^nestjs-distributed-lock/testing$': '<rootDir>/lib/testing/index.ts',
    '^nestjs-distributed-lock/tickets$': '<rootDir>/lib/tickets/index.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  testMatch: ['<rootDir>/test/**/*.spec.ts', '<rootDir>/examples/**/*.spec.ts', '<rootDir>/sample-app/**/*.spec.ts'],
  testPathIgnorePatterns: ['/node_modules/', '/dist/'],
  modulePathIgnorePatterns: ['/dist/'],
  testTimeout: 60_000,
  // Most suites wait for leases most of the time; the long ones play scenarios.
  maxWorkers: (process.env.TEST_LONG === undefined ? 3 : 2) * availableParallelism(),
  globalSetup: '<rootDir>/test/runner/seed.mjs',
  runner: '<rootDir>/test/runner/suite-runner.mjs',
  testEnvironment: '<rootDir>/test/runner/suite-environment.mjs',
  // The process of a suite ends with it.
  testEnvironmentOptions: { globalsCleanup: 'off' },
  testSequencer: '<rootDir>/test/runner/sequencer.mjs',
  reporters: ['default', '<rootDir>/test/runner/summary-reporter.mjs'],
};
