import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockModule, LockService } from 'nestjs-distributed-lock';
import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../support/random.js';
import { AccountService, type Lend } from './account.service.js';
import { HistoryFile, now } from './history.js';
import { Registers } from './registers.js';
import { WAIT_LEASES, type WorkerMessage, type WorkerOptions } from './worker-options.js';
import { storeOf } from './worker-store.js';

/** A holder waits at most so long for whoever has its ticket, in milliseconds. */
const LENT_MS = 100;
/** How often the event loop is looked at, and from when on it was late, in milliseconds. */
const PULSE_MS = 20;
const LATE_MS = 60;

const options = JSON.parse(process.argv[2] as string) as WorkerOptions;
const history = new HistoryFile(options.folder, options.name);
const registers = new Registers(options.registers, history);
const random = new Random(options.seed);
const lent = new Map<number, () => void>();
const realNow = Date.now;
let lastTicket = 0;
const stop = new AbortController();
// Whoever started it was killed, perhaps while this was loaded.
process.on('disconnect', () => stop.signal.aborted || process.exit(1));
if (!process.connected) {
  process.exit(1);
}

const lend: Lend = async (key, owner, ticket) => {
  const id = ++lastTicket;
  tell({ type: 'ticket', from: options.name, id, key, owner, ticket });
  await Promise.race([new Promise<void>((resolve) => lent.set(id, resolve)), sleep(random.between(0, LENT_MS))]);
  lent.delete(id);
};

const { store, prepare, end } = storeOf(options.source);

@Module({
  imports: [
    LockModule.forRootAsync({
      useFactory: () => ({
        store,
        ttl: options.leaseMs,
        wait: WAIT_LEASES * options.leaseMs,
      }),
    }),
  ],
  providers: [
    AccountService,
    { provide: 'HISTORY', useValue: history },
    { provide: 'REGISTERS', useValue: registers },
    { provide: 'RANDOM', useValue: random },
    { provide: 'LEND', useValue: lend },
  ],
})
class WorkerModule {}

if (options.isFirst) {
  await prepare();
}
const app = await NestFactory.createApplicationContext(WorkerModule, { logger: false });
const accounts = app.get(AccountService);
history.write({ op: 'start', phase: 'info' });
tell({ type: 'started' });
process.on('message', (message) => void hear(message as WorkerMessage));
const pulse = watchEventLoop();
const { busy, quiet } = options.keys;
await Promise.all([...Array.from({ length: 14 }, () => callers(busy, 20)), callers(quiet, 1_200)]);
await app.close();
await end();
registers.close();
clearInterval(pulse);
history.write({ op: 'stop', phase: 'info' });
process.disconnect();

/** One caller after the other, with a pause between them, until the end of the run. */
async function callers(keys: readonly string[], pauseMs: number): Promise<void> {
  while (!stop.signal.aborted) {
    await accounts.use(random.pick(keys), random.pick(keys));
    await sleep(random.between(0, pauseMs));
  }
}

async function hear(message: WorkerMessage): Promise<void> {
  if (message.type === 'stop') {
    stop.abort();
  } else if (message.type === 'block') {
    block(message.ms);
  } else if (message.type === 'wall') {
    moveWallClock(message.offsetMs);
  } else if (message.type === 'forceOld') {
    await forceOld(message.key);
  } else if (message.type === 'ticket') {
    await accounts.borrow(message.key, message.owner, message.ticket);
    tell({ type: 'ticketDone', to: message.from, id: message.id });
  } else if (message.type === 'ticketDone') {
    lent.get(message.id)?.();
  }
}

async function forceOld(key: string): Promise<void> {
  const locks = app.get(LockService);
  // Whether the servers can be reached is another's business.
  const fence = (await locks.inspect(key).catch(() => null))?.fence;
  if (fence !== undefined) {
    await locks.forceRelease(key, { fence: fence - 1 }).catch(() => undefined);
  }
}

function tell(message: WorkerMessage): void {
  if (process.connected) {
    process.send?.(message);
  }
}

function block(ms: number): void {
  const until = now() + ms;
  while (now() < until) {
    // As a garbage collection or a long computation does.
  }
}

function moveWallClock(offsetMs: number): void {
  Date.now = () => realNow() + offsetMs;
}

function watchEventLoop(): NodeJS.Timeout {
  let last = now();
  return setInterval(() => {
    const since = last;
    last = now();
    if (last - since > PULSE_MS + LATE_MS) {
      history.write({ op: 'stall', phase: 'info', since });
    }
  }, PULSE_MS);
}
