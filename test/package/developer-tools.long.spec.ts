import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { stripVTControlCharacters } from 'node:util';
import { INSTALL_MS, Workshop, type Consumer } from './consumer.js';
import { COMMAND_MS, type Output } from './run.js';

/** Longer than a command may take, whose output is what a failure shows. */
const TEST_MS = COMMAND_MS + 10_000;

/** The failure of each lock, as only `detail` says it: `fixtures/tools/errors.mjs`. */
const DETAILS = ['it is busy', 'it was lost', 'its key is undefined', 'its store is away', 'its options are wrong'].map(
  (what) => `Lock "balance:7" of host-3: ${what}.`,
);

const workshop = new Workshop();
let tools: Consumer;

beforeAll(async () => {
  await workshop.pack();
  tools = await workshop.consumer('tools');
}, INSTALL_MS + TEST_MS);

afterAll(() => workshop.clear());

/** The details that a tool wrote, also as a text of JSON or XML. */
function shownBy({ stdout, stderr }: Output): string[] {
  const text = stripVTControlCharacters(`${stdout}\n${stderr}`).replaceAll(/\\"|&quot;/g, '"');
  return DETAILS.filter((detail) => text.includes(detail));
}

describe('a test that fails with an error of a lock shows its detail', () => {
  test.each([
    ['jest', ['--experimental-vm-modules', 'node_modules/jest/bin/jest.js']],
    ['vitest 4', ['node_modules/vitest/vitest.mjs', 'run']],
    ['vitest 3', ['node_modules/vitest-3/vitest.mjs', 'run']],
    ['vitest 4, as JUnit', ['node_modules/vitest/vitest.mjs', 'run', '--reporter=junit']],
    ['node:test', ['--test', '--test-reporter=spec', 'failing.spec.mjs']],
    ['node:test, as dots', ['--test', '--test-reporter=dot', 'failing.spec.mjs']],
  ])(
    'in %s',
    async (_, args) => {
      expect(shownBy(await tools.failingNode(...args))).toEqual(DETAILS);
    },
    TEST_MS,
  );
});

describe('an error of a lock in a log shows its detail', () => {
  test.each(['nest', 'nest-with-text', 'nest-json', 'pino', 'pino-with-text', 'pino-err', 'winston', 'winston-with-text', 'console'])(
    'of %s',
    async (logger) => {
      expect(shownBy(await tools.node('loggers.mjs', logger))).toEqual(DETAILS);
    },
    TEST_MS,
  );
});
