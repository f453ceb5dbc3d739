import Redlock from 'redlock';
import { byHand } from '../decorated.mjs';
import { connectClient } from '../redis-client.mjs';

const TTL_MS = 10_000;

export const redlock = {
  name: 'redlock',
  tuned: 'retryCount 10000',
  async connect(port, { patient = false } = {}) {
    const client = await connectClient(port);
    const locks = new Redlock([client], patient ? { retryCount: 10_000 } : {});
    return byHand({
      acquire: (key) => locks.acquire(Array.isArray(key) ? key : [key], TTL_MS),
      release: (lock) => lock.release(),
      close: () => client.disconnect(),
    });
  },
};
