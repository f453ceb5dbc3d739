import { randomBytes } from 'node:crypto';
import type { OpenOptions } from '../../../lib/core/seam/lock-store.js';
import { throwIfAllFailed } from '../../../lib/kit/all-failed.js';
import { RedisConnection } from '../../../lib/redis/connection/redis-connection.js';
import type { RedisSource } from '../../../lib/redis/connection/redis-source.js';
import type { StoreOffer } from '../../../lib/contract/index.js';
import type { Address } from '../address/address.js';
import { makeStore } from '../stores/make-store.js';
import { redisSources } from '../stores/redis.js';
import type { Place } from './place.js';

const QUORUM: readonly StoreOffer[] = ['open', 'tickets', 'operator', 'messages', 'search', 'forced', 'health', 'reservesFences'];

/**
 * A place of keys under a prefix of their own. The prefix begins as the channels of the application do, so that a user
 * with the smallest ACL may use it; the application has no keys there.
 */
export async function redisPlace(address: Address, prefix: string): Promise<Place> {
  const own = `${prefix}:wake:contract-${randomBytes(6).toString('hex')}`;
  const sources = await redisSources(address);
  const made = await makeStore(address, undefined);
  // Without any server there are no keys; one of a quorum that was away may have some by the end.
  let isReached = false;
  return {
    name: `the keys that begin with "${own}"`,
    offers: () => (address.kind === 'quorum' ? QUORUM : [...QUORUM, 'turns', 'shared', 'permits']),
    async make() {
      const answers = await Promise.allSettled(sources.map(reach));
      throwIfAllFailed(answers);
      isReached = true;
    },
    findings: () => made.findings(own),
    async connect() {
      const { store } = await makeStore(address, undefined);
      const open = store.open?.bind(store);
      return Object.assign(store, { open: (options: OpenOptions) => open?.({ ...options, prefix: `${own}-${options.prefix}` }) });
    },
    remove: async () => void (await Promise.all(isReached ? sources.map((source) => removeKeys(source, own)) : [])),
    end: () => made.end(),
  };
}

async function reach(source: RedisSource): Promise<void> {
  const connection = new RedisConnection({ source });
  try {
    await connection.plain.info();
  } finally {
    connection.close();
  }
}

/** Deletes what is left of the keys: most have an end of their own. */
async function removeKeys(source: RedisSource, own: string): Promise<void> {
  const connection = new RedisConnection({ source });
  try {
    const pattern = `${own.replaceAll(/[\\*?[\]]/g, String.raw`\$&`)}*`;
    for (const node of await connection.plain.masters()) {
      let cursor = '0';
      do {
        const [next, names] = await connection.plain.scan(node, cursor, pattern);
        await Promise.all(names.map((name) => node.call('DEL', name)));
        cursor = next;
      } while (cursor !== '0');
    }
  } finally {
    connection.close();
  }
}
