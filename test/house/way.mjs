// Measures the way of one warm uncontended call: the files and functions of the library that it enters, by precise
// coverage, and the promises that are made meanwhile, awaits and the client's included. Arguments: redis URL, memory,
// or re-entry.
import { createHook } from 'node:async_hooks';
import { Session } from 'node:inspector/promises';
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { DistributedLock, LockModule, LockService, MemoryLockStore, RedisLockStore } from '../../lib/index.ts';

/** The first hundred calls of a method are looked at for transactions. */
const WARM = 120;
const library = new URL('../../lib/', import.meta.url).href;
const [what, url] = process.argv.slice(2);

class Balances {
  credit(_customerId) {
    return DONE;
  }
}
const DONE = Promise.resolve();
const method = Object.getOwnPropertyDescriptor(Balances.prototype, 'credit');
DistributedLock({ key: 'balance:<0>', returns: 'promise' })(Balances.prototype, 'credit', method);
Object.defineProperty(Balances.prototype, 'credit', method);
Injectable()(Balances);

function Application() {}
const store = what === 'redis' ? new RedisLockStore(new Redis(url, { lazyConnect: true })) : new MemoryLockStore();
Module({ imports: [LockModule.forRoot({ store })], providers: [Balances] })(Application);
const application = await NestFactory.createApplicationContext(Application, { logger: false });
const balances = application.get(Balances);

const session = new Session();
session.connect();
await session.post('Profiler.enable');

const entered = async () => {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  return result
    .filter((script) => script.url.startsWith(library))
    .flatMap((script) => script.functions.map((one) => ({ ...one, url: script.url })));
};

async function measure() {
  for (let calls = 0; calls < WARM; calls++) {
    await balances.credit('42');
  }
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await balances.credit('42');
  await entered();
  await balances.credit('42');
  const functions = (await entered()).filter(({ ranges }) => ranges[0].count > 0);
  await session.post('Profiler.stopPreciseCoverage');
  let promises = 0;
  const hook = createHook({
    init: (_, type) => {
      promises += type === 'PROMISE' ? 1 : 0;
    },
  });
  await balances.credit('42');
  hook.enable();
  await balances.credit('42');
  hook.disable();
  return { files: [...new Set(functions.map((one) => one.url.slice(library.length)))].toSorted(), functions: functions.length, promises };
}

/**
 * The middle round of many: a timer or a renewal falls into few of them, and where the garbage collector has taken a
 * function away, V8 does not tell that it was entered.
 */
async function measureOften() {
  const ways = [];
  for (let round = 0; round < 21; round++) {
    ways.push(await measure());
  }
  const middle = (of) => ways.toSorted((one, other) => of(one) - of(other))[10];
  const [{ files }, { functions }] = [middle((way) => way.files.length), middle((way) => way.functions)];
  return { files, functions, promises: Math.min(...ways.map((way) => way.promises)) };
}

const way =
  what === 're-entry' ? await application.get(LockService).withLock('balance:42', { ttl: '5m' }, measureOften) : await measureOften();
console.log(JSON.stringify(way));
await application.close();
process.exit();
