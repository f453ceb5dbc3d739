import { TestEnvironment } from 'jest-environment-node';
import { noteFailure, startWindow } from './stops.mjs';

/** Takes down which tests failed while they were stopped. */
export default class SuiteEnvironment extends TestEnvironment {
  async handleTestEvent(event) {
    if (event.name === 'test_start' || (event.name === 'hook_start' && event.hook.type.endsWith('All'))) {
      startWindow();
    } else if (event.name === 'hook_failure' && event.hook.type === 'beforeAll') {
      await noteFailure(namesIn(event.describeBlock));
    } else if (event.name === 'test_done' && event.test.errors.length > 0) {
      await noteFailure(namesIn(event.test));
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
