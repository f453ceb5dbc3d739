import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockModule } from 'nestjs-distributed-lock';
import { LockPageModule } from 'nestjs-distributed-lock/page';
import type { LockPlace } from '../lock-place.js';
import { makeLockStore } from '../lock-store.js';

/** An application that does nothing but show the locks of the others. */
export async function startPage(locks: LockPlace, port: number): Promise<string> {
  @Module({
    imports: [
      LockModule.forRootAsync({ useFactory: async () => ({ store: await makeLockStore(locks) }) }),
      // It listens on this machine alone, for as long as the demo runs.
      LockPageModule.forRoot({ access: 'anybody', actions: () => true }),
    ],
  })
  class PageModule {}
  const app = await NestFactory.create(PageModule, { abortOnError: false, logger: ['error', 'warn'] });
  app.enableShutdownHooks();
  await app.listen(port, '127.0.0.1');
  const address = app.getHttpServer().address() as { port: number };
  return `http://127.0.0.1:${address.port}/locks`;
}
