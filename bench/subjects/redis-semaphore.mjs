import { Mutex } from 'redis-semaphore';
import { connectClient } from '../redis-client.mjs';

export const redisSemaphore = {
  name: 'redis-semaphore',
  async connect(port) {
    const client = await connectClient(port);
    return {
      async acquire(key) {
        const mutex = new Mutex(client, key);
        await mutex.acquire();
        return mutex;
      },
      release: (mutex) => mutex.release(),
      close: () => client.disconnect(),
    };
  },
};
