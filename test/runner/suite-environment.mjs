import { TestEnvironment } from 'jest-environment-node';
import { noteFailure, startTest } from './stops.mjs';

/**
 * Takes down which tests failed while they were stopped for more than 100 ms of one second: their failure says nothing.
 * A file that claims less, or more, says so: `@jest-environment-options {"allowedStopMs": 30}`.
 */
export default class SuiteEnvironment extends TestEnvironment {
  #allowedMs;

  constructor(config, context) {
    super(config, context);
    const { allowedStopMs = 100 } = config.projectConfig.testEnvironmentOptions;
    this.#allowedMs = allowedStopMs;
  }

  async handleTestEvent(event) {
    if (event.name === 'test_start' || (event.name === 'hook_start' && event.hook.type.endsWith('All'))) {
      await startTest();
    } else if (event.name === 'hook_failure' && event.hook.type === 'beforeAll') {
      await noteFailure(namesIn(event.describeBlock), this.#allowedMs);
    } else if (event.name === 'test_done' && event.test.errors.length > 0) {
      await noteFailure(namesIn(event.test), this.#allowedMs);
    }
  }
}

/** The full names of the tests of a block, as jest reports them. */
function namesIn(block, ancestors = titlesAbove(block)) {
  const titles = [...ancestors, ...(block.parent ? [block.name] : [])];
  return block.type === 'test' ? [titles.join(' ')] : block.children.flatMap((child) => namesIn(child, titles));
}

/** The block of the file itself has no parent, and its name does not count. */
function titlesAbove({ parent }) {
  return parent?.parent ? [...titlesAbove(parent), parent.name] : [];
}
