import { byHand, makeDecorated } from '../decorated.mjs';
import { createClient, DistributedLock, LockModule, LockService, NestFactory, RedisLockStore } from '../library.mjs';

export const thisLibrary = {
  name: 'nestjs-distributed-lock',
  isJudged: true,
  connect: (port) => libraryWith(new RedisLockStore({ host: '127.0.0.1', port })),
};

export const byNodeRedis = {
  name: 'by node-redis',
  note: 'nestjs-distributed-lock on clients of node-redis',
  connect: (port) => libraryWith(new RedisLockStore(createClient({ socket: { host: '127.0.0.1', port } }))),
};

/** This library without the decorator. */
export const withLock = {
  name: 'withLock',
  note: 'nestjs-distributed-lock without its decorator',
  async connect(port) {
    const { locks, close } = await thisLibrary.connect(port);
    return { call: (customerId) => locks.withLock(`balance:${customerId}`, async () => customerId), close };
  },
};

export const handles = {
  name: 'acquire, release',
  note: withLock.note,
  connect: async (port) => byHand(await thisLibrary.connect(port)),
};

/** An application with locks in that store, and with a decorated method. */
export async function libraryWith(store, telemetry, Balance = makeDecorated(DistributedLock('balance:<customerId>'))) {
  const module = { module: App, imports: [LockModule.forRoot({ store, telemetry })], providers: [Balance] };
  const app = await NestFactory.createApplicationContext(module, { logger: false });
  const locks = app.get(LockService);
  const balance = app.get(Balance);
  return {
    locks,
    call: (customerId) => balance.credit(customerId),
    acquire: (key) => locks.acquire(key),
    release: (lock) => lock.release(),
    close: () => app.close(),
  };
}

/** The class that Nest makes of the module itself. */
function App() {}
