// Runs suites, one after the other, and sends what came of each to the process of jest. Waits to be killed.
import { leftNothing, noteRests } from './rests.mjs';
import { stopped, watchStops } from './stops.mjs';

const { default: testWorker } = await import(new URL('testWorker.js', import.meta.resolve('jest-runner')));

// The parent was killed: nobody else ends this process, and what it has started.
process.once('disconnect', () => process.kill(-process.pid, 'SIGKILL'));

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
    process.send({ result, stopped: Object.fromEntries(stopped), mayGoOn: await leftNothing() });
  } catch (error) {
    process.send({ error });
  }
});
