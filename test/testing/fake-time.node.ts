import 'reflect-metadata';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { SCENARIOS } from './fake-time.js';

async function advance(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 10) {
    mock.timers.tick(10);
    await turn();
  }
}

void describe('with the timers of node:test', () => {
  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now: Date.now() });
    mock.method(performance, 'now', () => Date.now());
  });
  afterEach(() => {
    mock.restoreAll();
    mock.timers.reset();
  });

  for (const [name, scenario] of Object.entries(SCENARIOS)) {
    void test(name, () => scenario(advance));
  }
});
