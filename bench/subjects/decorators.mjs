// The peers' decorators, each in an application of its own, in the Nest of bench/node_modules, which they ask for.
import { createRequire } from 'node:module';
import { NestFactory } from '@nestjs/core';
import { IoredisAdapter, Redlock as UniversalRedlock, RedlockModule as UniversalRedlockModule } from 'nestjs-redlock-universal';
import { makeDecorated } from '../decorated.mjs';
import { connectClient } from '../redis-client.mjs';

// Its ES modules do not load in Node: their imports have no file extensions.
const { Redlock, RedlockModule } = createRequire(import.meta.url)('@anchan828/nest-redlock');

export const PEER_DECORATORS = [
  {
    name: '@anchan828/nest-redlock',
    note: 'its decorator',
    connect: (port) =>
      start(
        port,
        (client) => RedlockModule.register({ clients: [client] }),
        Redlock((_, customerId) => `balance:${customerId}`),
      ),
  },
  {
    name: 'nestjs-redlock-universal',
    note: 'its decorator',
    connect: (port) =>
      start(
        port,
        (client) => UniversalRedlockModule.forRoot({ nodes: [new IoredisAdapter(client)] }),
        UniversalRedlock({ key: (customerId) => `balance:${customerId}` }),
      ),
  },
];

async function start(port, moduleOf, decorator) {
  const client = await connectClient(port);
  const Balance = makeDecorated(decorator);
  const module = { module: App, imports: [moduleOf(client)], providers: [Balance] };
  const app = await NestFactory.createApplicationContext(module, { logger: false });
  const balance = app.get(Balance);
  return {
    call: (customerId) => balance.credit(customerId),
    async close() {
      await app.close();
      client.disconnect();
    },
  };
}

/** The class that Nest makes of the module itself. */
function App() {}
