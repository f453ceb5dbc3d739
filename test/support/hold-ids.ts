import { RedisLockStore } from 'nestjs-distributed-lock';
import { makeLocks } from './make-locks';
import type { RedisServer } from './redis-server';

/** The ids of the holds of this process: counted, behind a random name that no other process has. */
export async function holdIds(server: RedisServer): Promise<RegExp> {
  const store = new RedisLockStore(server.url);
  await store.open({ prefix: 'hold-ids', warn: () => undefined });
  const fields = await makeLocks(store).withLock('k', async () => Object.keys(await server.client.hgetall('hold-ids:lock:{k}')));
  const [id = ''] = fields.flatMap((field) => field.split('hold:').slice(1));
  await store.close();
  const name = /^[\w-]{16}(?=[0-9a-z]+-[\w-]{6}$)/.exec(id);
  if (!name) {
    throw new Error(`the hold is called "${id}"`);
  }
  return new RegExp(`${name[0]}[0-9a-z]+-[\\w-]{6}`, 'g');
}
