// Permits of a semaphore, and locks of read mode.
import { Semaphore } from 'redis-semaphore';
import { byHand, makeDecorated } from '../decorated.mjs';
import { DistributedSemaphore, RedisLockStore } from '../library.mjs';
import { connectClient } from '../redis-client.mjs';
import { libraryWith, thisLibrary } from './this-library.mjs';

/** Longer than any measurement. */
const PATIENCE_MS = 60_000;

/** A semaphore with so many permits, of this library and of the peer that has one. */
function semaphores(permits) {
  return [
    {
      name: `${permits} permits`,
      note: 'nestjs-distributed-lock',
      isJudged: true,
      async connect(port) {
        const Balance = makeDecorated(DistributedSemaphore({ key: 'balance:<customerId>', permits }));
        const { locks, ...library } = await libraryWith(new RedisLockStore({ host: '127.0.0.1', port }), undefined, Balance);
        return { ...library, acquire: (key) => locks.acquirePermit(key, permits, { wait: PATIENCE_MS }) };
      },
    },
    {
      name: `redis-semaphore, ${permits} permits`,
      async connect(port) {
        const client = await connectClient(port);
        return byHand({
          async acquire(key) {
            const semaphore = new Semaphore(client, key, permits, { acquireTimeout: PATIENCE_MS });
            await semaphore.acquire();
            return semaphore;
          },
          release: (semaphore) => semaphore.release(),
          close: () => client.disconnect(),
        });
      },
    },
  ];
}

/** As many as callers, so that none waits. */
export const ENOUGH = semaphores(64);
export const FEW = semaphores(10);

/** This library's locks of read mode. */
export const readers = {
  name: 'read mode',
  note: thisLibrary.name,
  isJudged: true,
  async connect(port) {
    const { locks, close } = await thisLibrary.connect(port);
    return { acquire: (key) => locks.acquire(key, { mode: 'read' }), release: (lock) => lock.release(), close };
  },
};
