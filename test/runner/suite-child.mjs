// Runs one suite, sends what came of it to the process of jest, and waits to be killed.
import { stopped, watchStops } from './stops.mjs';

const { default: testWorker } = await import(new URL('testWorker.js', import.meta.resolve('jest-runner')));

// The parent was killed: nobody else ends this process, and what it has started.
process.once('disconnect', () => process.kill(-process.pid, 'SIGKILL'));

process.once('message', async ({ setup, suite }) => {
  watchStops();
  try {
    await testWorker.setup(setup);
    process.send({ result: await testWorker.worker(suite), stopped: Object.fromEntries(stopped) });
  } catch (error) {
    process.send({ error });
  }
});
