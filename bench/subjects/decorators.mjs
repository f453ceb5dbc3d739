// The decorators, each in an application of its own. The peers' run in the Nest of bench/node_modules, which they ask for.
import { createRequire } from 'node:module';
import { NestFactory as PeersNestFactory } from '@nestjs/core';
import { IoredisAdapter, Redlock as UniversalRedlock, RedlockModule as UniversalRedlockModule } from 'nestjs-redlock-universal';
import { makeDecorated } from '../decorated.mjs';
import { DistributedLock, LockModule, MemoryLockStore, NestFactory } from '../library.mjs';
import { connectClient } from '../redis-client.mjs';

// Its ES modules do not load in Node: their imports have no file extensions.
const { Redlock, RedlockModule } = createRequire(import.meta.url)('@anchan828/nest-redlock');

export const ourDecorator = {
  name: 'nestjs-distributed-lock',
  note: 'memory store',
  connect: () => start(NestFactory, () => LockModule.forRoot({ store: new MemoryLockStore() }), DistributedLock('balance:<customerId>')),
};

const onRedis = 'for information: on Redis, as it has no memory store';

export const DECORATORS = [
  ourDecorator,
  {
    name: '@anchan828/nest-redlock',
    note: onRedis,
    connect: (port) =>
      start(
        PeersNestFactory,
        (client) => RedlockModule.register({ clients: [client] }),
        Redlock((_, id) => `balance:${id}`),
        port,
      ),
  },
  {
    name: 'nestjs-redlock-universal',
    note: onRedis,
    connect: (port) =>
      start(
        PeersNestFactory,
        (client) => UniversalRedlockModule.forRoot({ nodes: [new IoredisAdapter(client)] }),
        UniversalRedlock({ key: (id) => `balance:${id}` }),
        port,
      ),
  },
];

/** What Nest makes of the module itself. */
function App() {}

async function start(factory, moduleOf, decorator, port) {
  const client = port && (await connectClient(port));
  const Balance = makeDecorated(decorator);
  const module = { module: App, imports: [moduleOf(client)], providers: [Balance] };
  const app = await factory.createApplicationContext(module, { logger: false });
  return {
    balance: app.get(Balance),
    async close() {
      await app.close();
      client?.disconnect();
    },
  };
}
