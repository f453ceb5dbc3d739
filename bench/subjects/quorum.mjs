// The library on a quorum of Redis servers, and the least that the Redlock algorithm has to send, written by hand.
import { randomUUID } from 'node:crypto';
import { QuorumLockStore } from '../library.mjs';
import { connectClient } from '../redis-client.mjs';
import { COMPARE_AND_DELETE, SHA, TTL_MS } from './floor.mjs';
import { libraryWith } from './this-library.mjs';

export const quorum = {
  name: 'quorum',
  connect: (ports) => libraryWith(new QuorumLockStore(ports.map((port) => ({ host: '127.0.0.1', port })))),
};

export const quorumFloor = {
  name: 'quorum floor',
  note: 'SET NX PX and a compare-and-delete script on all servers at once, by hand',
  async connect(ports) {
    const clients = await Promise.all(ports.map(connectClient));
    await Promise.all(clients.map((client) => client.script('LOAD', COMPARE_AND_DELETE)));
    const onAll = (send) => Promise.all(clients.map(send));
    return {
      async acquire(key) {
        const token = randomUUID();
        const votes = await onAll((client) => client.set(key, token, 'PX', TTL_MS, 'NX'));
        if (2 * votes.filter((vote) => vote === 'OK').length <= ports.length) {
          throw new Error(`${key} is taken`);
        }
        return { key, token };
      },
      release: ({ key, token }) => onAll((client) => client.evalsha(SHA, 1, key, token)),
      close: () => clients.forEach((client) => client.disconnect()),
    };
  },
};
