// The least that a safe lock has to send, written by hand: nothing waits, renews or retries.
import { createHash, randomUUID } from 'node:crypto';
import { byHand } from '../decorated.mjs';
import { connectClient } from '../redis-client.mjs';

export const TTL_MS = 10_000;
export const COMPARE_AND_DELETE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end`;
export const SHA = createHash('sha1').update(COMPARE_AND_DELETE).digest('hex');

export const floor = {
  name: 'floor',
  note: 'SET NX PX and a compare-and-delete script by hand',
  async connect(port) {
    const client = await connectClient(port);
    await client.script('LOAD', COMPARE_AND_DELETE);
    return byHand({
      async acquire(key) {
        const token = randomUUID();
        if ((await client.set(key, token, 'PX', TTL_MS, 'NX')) !== 'OK') {
          throw new Error(`${key} is taken`);
        }
        return { key, token };
      },
      release: ({ key, token }) => client.evalsha(SHA, 1, key, token),
      close: () => client.disconnect(),
    });
  },
};
