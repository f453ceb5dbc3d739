import { Mutex } from 'redis-semaphore';
import { byHand } from '../decorated.mjs';
import { connectClient } from '../redis-client.mjs';

export const redisSemaphore = {
  name: 'redis-semaphore',
  async connect(port) {
    const client = await connectClient(port);
    return byHand({
      async acquire(key) {
        const mutex = new Mutex(client, key);
        await mutex.acquire();
        return mutex;
      },
      release: (mutex) => mutex.release(),
      close: () => client.disconnect(),
    });
  },
};
