// A process of its own: adds to a number in a file, over and over, under a lock in an SQLite file.
// Arguments: the file of the locks, the file of the number, how often to add.
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DistributedLock, LockModule } from 'nestjs-distributed-lock';
import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import 'reflect-metadata';
import { SqliteLockStore } from './sqlite-lock-store.js';

const [locks = '', file = '', times = '0'] = process.argv.slice(2);

@Injectable()
export class Counter {
  @DistributedLock('counter')
  async add(): Promise<void> {
    const seen = Number(await readFile(file, 'utf8'));
    await sleep(1);
    await writeFile(file, String(seen + 1));
  }
}

@Module({
  imports: [LockModule.forRoot({ store: new SqliteLockStore(locks), ttl: '2s', wait: '30s' })],
  providers: [Counter],
})
export class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
app.enableShutdownHooks();
for (let round = 0; round < Number(times); round++) {
  await app.get(Counter).add();
  await sleep(Math.random() * 10);
}
await app.close();
