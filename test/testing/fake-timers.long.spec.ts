/** @jest-environment-options {"allowedStopMs": 600000} */
// Nothing here depends on the time that really passes.
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { install, type Clock } from '@sinonjs/fake-timers';
import { stripVTControlCharacters } from 'node:util';
import { run } from '../package/run.js';
import { SCENARIOS } from './fake-time.js';

const scenarios = Object.entries(SCENARIOS);

describe('with the timers of jest, all that it fakes', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  test.each(scenarios)('%s', (_name, scenario) => scenario((ms) => jest.advanceTimersByTimeAsync(ms)));
});

describe('with @sinonjs/fake-timers, all that it fakes', () => {
  let clock: Clock;
  beforeEach(() => {
    clock = install();
  });
  afterEach(() => clock.uninstall());

  test.each(scenarios)('%s', (_name, scenario) => scenario((ms) => clock.tickAsync(ms)));
});

test('with vitest, what it fakes by default and all that it can', async () => {
  const { stdout } = await run(
    'node',
    ['test/node_modules/vitest/vitest.mjs', 'run', '--root', '.', '--config', 'test/testing/vitest.config.mjs'],
    {
      cwd: '.',
    },
  );
  expect(stripVTControlCharacters(stdout)).toMatch(new RegExp(`Tests +${2 * scenarios.length} passed \\(${2 * scenarios.length}\\)`));
}, 250_000);

test('with node:test, by the clock of the page', async () => {
  const args = ['--import', './test/support/typescript.mjs', '--test', '--test-reporter=tap', 'test/testing/fake-time.node.ts'];
  const { stdout } = await run('node', args, { cwd: '.' });
  expect(stdout).toContain(`# pass ${scenarios.length}\n`);
}, 250_000);
