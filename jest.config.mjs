import { availableParallelism } from 'node:os';
import selection from './test/runner/selection.cjs';
import { SOURCES } from './scripts/entry-points.mjs';
import { environmentOf, SERVERS, versionOf } from './scripts/fetched-servers.mjs';

/** The settings of all suites, whichever servers they start. */
const suites = {
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '^.+\\.ts$': '@swc/jest' },
  moduleNameMapper: {
    ...Object.fromEntries(Object.entries(SOURCES).map(([name, source]) => [`^${name}$`, `<rootDir>/${source}`])),
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  testMatch: ['<rootDir>/test/**/*.spec.ts', '<rootDir>/examples/**/*.spec.ts', '<rootDir>/sample-app/**/*.spec.ts'],
  testPathIgnorePatterns: ['/node_modules/', '/dist/'],
  modulePathIgnorePatterns: ['/dist/'],
  globalSetup: '<rootDir>/test/runner/seed.mjs',
  runner: '<rootDir>/test/runner/suite-runner.mjs',
  testEnvironment: '<rootDir>/test/runner/suite-environment.mjs',
  // The process of a suite ends with it.
  testEnvironmentOptions: { globalsCleanup: 'off' },
};

const pathsOf = (names) => names.map((name) => `<rootDir>/test/${name}.spec.ts`);

/** The suites that are played again on a server that was fetched. */
function playedOn(name) {
  return {
    ...suites,
    displayName: name,
    testMatch: pathsOf(selection.PLAYED[name.replace(/-.*/, '')]),
    testEnvironmentOptions: { ...suites.testEnvironmentOptions, env: environmentOf(name) },
  };
}

const isLong = process.env.TEST_LONG !== undefined;
const fetched = Object.keys(SERVERS).filter((name) => versionOf(name) !== undefined);
const projects = [
  { ...suites, displayName: 'tests', testPathIgnorePatterns: [...suites.testPathIgnorePatterns, ...pathsOf(selection.BRIEF)] },
  ...fetched.map(playedOn),
];

/** @type {import('jest').Config} */
export default {
  ...(isLong ? { projects } : suites),
  testTimeout: 60_000,
  // Most suites wait for leases most of the time; the long ones play scenarios.
  maxWorkers: (isLong ? 2 : 3) * availableParallelism(),
  testSequencer: '<rootDir>/test/runner/sequencer.mjs',
  reporters: ['default', '<rootDir>/test/runner/summary-reporter.mjs'],
};
