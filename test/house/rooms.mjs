// Counts the rooms of an uncontended locked call: the functions of the library on the stack, asynchronous frames included, when the
// acquire is sent, when the method's body runs, and when the release is sent. Run it with the URL of a Redis server, after a build.
import { createRequire } from 'node:module';
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { DistributedLock, LockModule, RedisLockStore } from '../../dist/esm/index.js';

const require = createRequire(import.meta.url);
const library = new URL('.', new URL('../../dist/esm/index.js', import.meta.url)).href;
const rooms = new Map();
let isCounting = false;

function visit(where) {
  if (!isCounting) {
    return;
  }
  const frames = new Error(where).stack.split('\n').filter((line) => line.includes(library));
  for (const frame of frames) {
    const [, text, file] = /at (?:async )?(?:(.*) \()?file:.*?\/dist\/esm\/(.*?):\d+:\d+\)?$/.exec(frame);
    // A closure has no name, and is told apart by its place.
    const name = text ?? `closure at ${frame.slice(frame.lastIndexOf('/') + 1)}`;
    rooms.set(`${file} ${name}`, where);
  }
}

class Balances {
  async credit(_customerId) {
    visit('the body');
  }
}
const method = Object.getOwnPropertyDescriptor(Balances.prototype, 'credit');
DistributedLock({ key: 'balance:<0>' })(Balances.prototype, 'credit', method);
Object.defineProperty(Balances.prototype, 'credit', method);
Injectable()(Balances);

function Application() {}
const store = new RedisLockStore(new Redis(process.argv[2], { lazyConnect: true }));
Module({ imports: [LockModule.forRoot({ store })], providers: [Balances] })(Application);

const sendCommand = Reflect.get(Redis.prototype, 'sendCommand');
let sent = 0;
Redis.prototype.sendCommand = function send(command, ...rest) {
  if (command.name === 'evalsha') {
    visit(sent++ % 2 === 0 ? 'the acquire' : 'the release');
  }
  return sendCommand.call(this, command, ...rest);
};

Error.stackTraceLimit = 100;
const application = await NestFactory.createApplicationContext(Application, { logger: false });
const balances = application.get(Balances);
await balances.credit('warm');
await balances.credit('warm');
sent = 0;
isCounting = true;
await balances.credit('counted');
isCounting = false;
for (const [room, where] of rooms) {
  console.log(`${where}\t${room}`);
}
console.log(`${rooms.size} rooms with ioredis ${require('ioredis/package.json').version}`);
await application.close();
process.exit();
