// Runs suites, one after the other, and sends what came of each to the process of jest. Waits to be killed.
import { inspect } from 'node:util';
import { leftNothing, noteRests } from './rests.mjs';
import { stopped, watchStops } from './stops.mjs';

const { default: testWorker } = await import(new URL('testWorker.js', import.meta.resolve('jest-runner')));

// The parent was killed: nobody else ends this process, and what it has started.
process.once('disconnect', () => process.kill(-process.pid, 'SIGKILL'));

/** How long a suite may go on in which something was thrown outside of its tests. */
const GRACE_MS = 10_000;

/** The error that was thrown outside of the tests of the suite, as text. */
let stray;

// jest would end the process at once, and with it the results of the tests: one that fails may leave a promise that is
// rejected later.
process.removeAllListeners('uncaughtException');
process.on('uncaughtException', (error) => {
  if (stray === undefined) {
    setTimeout(() => process.exit(1), GRACE_MS);
  }
  stray ??= inspect(error);
  console.error(error);
});

let isNew = true;

process.on('message', async ({ setup, suite }) => {
  try {
    if (isNew) {
      isNew = false;
      await watchStops();
      await testWorker.setup(setup);
      noteRests();
    }
    stopped.clear();
    const result = await testWorker.worker(suite);
    const isTidy = await leftNothing();
    process.send({ result, stray, stopped: Object.fromEntries(stopped), mayGoOn: isTidy && stray === undefined });
  } catch (error) {
    process.send({ error });
  }
});
