import { createLock, IoredisAdapter } from 'redlock-universal';
import { byHand } from '../decorated.mjs';
import { connectClient } from '../redis-client.mjs';

function redlockUniversalWith(name, note, settings) {
  return {
    name,
    note,
    tuned: 'retryAttempts 10000',
    async connect(port, { patient = false } = {}) {
      const client = await connectClient(port);
      const config = { adapter: new IoredisAdapter(client), ...settings, ...(patient && { retryAttempts: 10_000 }) };
      return byHand({
        async acquire(key) {
          const lock = createLock({ ...config, key });
          return { lock, handle: await lock.acquire() };
        },
        release: ({ lock, handle }) => lock.release(handle),
        close: () => client.disconnect(),
      });
    },
  };
}

export const redlockUniversal = redlockUniversalWith('redlock-universal', 'its default sends a PING for each new lock', {});

export const leanRedlockUniversal = redlockUniversalWith('redlock-universal lean', "performance: 'lean', which sends no PING", {
  performance: 'lean',
});
