import 'reflect-metadata';
import { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { ClsPluginTransactional } from '@nestjs-cls/transactional';
import { BullModule, getQueueToken } from '@nestjs/bullmq';
import type { DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { QueueEvents, type Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { ClsModule } from 'nestjs-cls';
import { LockModule, LockService, RedisLockStore } from 'nestjs-distributed-lock';
import { once } from 'node:events';
import { Pool } from 'pg';
import { DataSource } from 'typeorm';
import { addTransactionalDataSource, initializeTransactionalContext, StorageDriver } from 'typeorm-transactional';
import { answered } from '../support/patient.js';
import { openPrisma } from '../support/prisma.js';
import {
  Balance,
  done,
  FOLLOWED,
  Jobs,
  OrderProcessor,
  PRISMA,
  Readme,
  Requests,
  WithCls,
  WithClsSwapped,
  WithPrisma,
  WithTypeOrm,
  WithTypeOrmTransactional,
} from './recipes.js';
import { BANK, CACHE, Rates } from './single-flight.js';
import { SearchIndex } from './windows.js';

/** How many credits of 1 a process books by each recipe. */
const CREDITS = 8;

// In a process of its own: some libraries require Nest, which jest cannot.
const [database, redis, bank] = process.argv.slice(2) as [string, string, string];
const connection = { host: '127.0.0.1', port: Number(new URL(redis).port) };
const pool = new Pool({ connectionString: database });
pool.on('error', (error) => console.error(error));
const openTypeOrm = (): Promise<DataSource> => new DataSource({ type: 'postgres', url: database, entities: [Balance] }).initialize();
initializeTransactionalContext({ storageDriver: StorageDriver.ASYNC_LOCAL_STORAGE });
const ofDatabase: DynamicModule = {
  module: class {},
  providers: [
    { provide: DataSource, useValue: await openTypeOrm() },
    { provide: FOLLOWED, useValue: addTransactionalDataSource(await openTypeOrm()) },
    { provide: PRISMA, useValue: openPrisma(pool) },
  ],
  exports: [DataSource, FOLLOWED, PRISMA],
};
const application = await NestFactory.createApplicationContext(
  {
    module: class {},
    imports: [
      ofDatabase,
      LockModule.forRoot({ store: new RedisLockStore(redis), wait: '60s' }),
      ClsModule.forRoot({
        plugins: [
          new ClsPluginTransactional({
            imports: [ofDatabase],
            adapter: new TransactionalAdapterTypeOrm({ dataSourceToken: DataSource }),
          }),
        ],
      }),
      ScheduleModule.forRoot(),
      BullModule.forRoot({ connection }),
      BullModule.registerQueue({ name: 'orders' }),
    ],
    providers: [
      ...[WithCls, WithClsSwapped, WithTypeOrm, WithTypeOrmTransactional, WithPrisma, Jobs, OrderProcessor, Requests, Readme],
      ...[Rates, SearchIndex, { provide: CACHE, useValue: new Redis(redis) }, { provide: BANK, useValue: bank }],
    ],
  },
  { logger: ['warn', 'error'] },
);
application.enableShutdownHooks();

/** The tasks that the test asks for, one at a time. */
const TASKS: Readonly<Record<string, () => Promise<unknown>>> = {
  ...Object.fromEntries(
    [WithCls, WithClsSwapped, WithTypeOrm, WithTypeOrmTransactional, WithPrisma].map((type) => [
      type.name,
      () => creditAll(application.get(type)),
    ]),
  ),
  cron: async () => {
    const jobs = [...application.get(SchedulerRegistry).getCronJobs().values()];
    jobs.forEach((job) => (job.waitForCompletion = true));
    await Promise.all(jobs.map((job) => job.fireOnTick()));
    return done.splice(0);
  },
  queue: async () => {
    const queue = application.get<Queue>(getQueueToken('orders'));
    const events = new QueueEvents('orders', { connection });
    await events.waitUntilReady();
    const jobs = await Promise.all(Array.from({ length: CREDITS }, () => queue.add('settle', { orderId: '42' })));
    await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
    await events.close();
  },
  shared: async () => {
    const requests = application.get(Requests);
    await Promise.all([requests.request('1'), requests.request('2')]);
    return done.splice(0);
  },
  events: async () => {
    await application.get(Requests).place({ id: '3' });
    await application.get(LockService).withLock('order:3', () => undefined);
    return done.splice(0);
  },
  rates: async () => {
    const calls = await Promise.allSettled(Array.from({ length: CREDITS }, () => application.get(Rates).latest('EUR')));
    return calls.map((call) => (call.status === 'fulfilled' ? call.value : String(call.reason)));
  },
  rebuild: () => answerOf(() => application.get(SearchIndex).rebuild('runs')),
  'rebuild, which fails': () => answerOf(() => application.get(SearchIndex).rebuild('fails')),
  'rebuild, which hangs': async () => {
    const begun = once(application.get(SearchIndex).begun, 'rebuild');
    void application.get(SearchIndex).rebuild('hangs');
    return (await begun) as unknown;
  },
  readme: async () => {
    const readme = application.get(Readme);
    await readme.recount('1');
    await readme.report();
    await readme.close('1');
    return done.splice(0);
  },
};

/** The result of a call, or its error as a text; 'skipped' for a call that was not run. */
async function answerOf(call: () => Promise<string | undefined>): Promise<string> {
  return answered(call).then((result) => result ?? 'skipped', String);
}

async function creditAll(service: WithCls): Promise<void> {
  await Promise.all(Array.from({ length: CREDITS }, () => service.credit('42', 1)));
}

process.on('message', (task: string) => {
  void TASKS[task]?.().then(
    (result) => process.send?.({ task, result }),
    (error: unknown) => process.send?.({ task, error: String(error) }),
  );
});
process.send?.({ task: 'start' });
