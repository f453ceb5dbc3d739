import { LockModule, LockService, NestFactory, RedisLockStore } from '../library.mjs';

export const thisLibrary = {
  name: 'nestjs-distributed-lock',
  connect: (port) => libraryWith(new RedisLockStore({ host: '127.0.0.1', port })),
};

/** An application with locks in that store. */
export async function libraryWith(store, telemetry) {
  const module = LockModule.forRoot({ store, telemetry });
  const app = await NestFactory.createApplicationContext(module, { logger: false });
  const locks = app.get(LockService);
  return {
    locks,
    acquire: (key) => locks.acquire(key),
    release: (lock) => lock.release(),
    close: () => app.close(),
  };
}
