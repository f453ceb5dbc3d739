// Those that lock several keys at once, in the order of the keys where they have to take one after the other.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectClient } from '../redis-client.mjs';
import { COMPARE_AND_DELETE, SHA, TTL_MS } from './floor.mjs';
import { redisSemaphore } from './redis-semaphore.mjs';
import { redlock } from './redlock.mjs';
import { thisLibrary } from './this-library.mjs';

const POLL_MS = 10;

/** The lock that many write by hand. */
export const polling = oneByOne({
  name: `SET NX every ${POLL_MS} ms`,
  async connect(port) {
    const client = await connectClient(port);
    await client.script('LOAD', COMPARE_AND_DELETE);
    return {
      async acquire(key) {
        const token = randomUUID();
        while ((await client.set(key, token, 'PX', TTL_MS, 'NX')) !== 'OK') {
          await sleep(POLL_MS);
        }
        return { key, token };
      },
      release: ({ key, token }) => client.evalsha(SHA, 1, key, token),
      close: () => client.disconnect(),
    };
  },
});

const keyByKey = oneByOne({ ...redisSemaphore, name: `${redisSemaphore.name}, key by key` });

export const TRANSFERRING = [thisLibrary, polling, redlock, keyByKey];

function oneByOne(subject) {
  return {
    ...subject,
    async connect(port, options) {
      const { acquire, release, close } = await subject.connect(port, options);
      return {
        async acquire(keys) {
          const held = [];
          for (const key of [keys].flat().toSorted((a, b) => (a < b ? -1 : 1))) {
            held.push(await acquire(key));
          }
          return held;
        },
        release: (held) => Promise.all(held.map(release)),
        close,
      };
    },
  };
}
