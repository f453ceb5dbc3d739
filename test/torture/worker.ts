import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LOCK_CHANNEL, LockModule, LockService, LockStoreError, type LockEvent } from 'nestjs-distributed-lock';
import { subscribe } from 'node:diagnostics_channel';
import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../support/random.js';
import { AccountService, type Lend } from './account.service.js';
import { CandidateOfWorker } from './candidate-of-worker.js';
import { HistoryFile, now } from './history.js';
import { Registers } from './registers.js';
import { SharingService } from './sharing.service.js';
import { WAIT_LEASES, type WorkerMessage, type WorkerOptions } from './worker-options.js';
import { storeOf } from './worker-store.js';

/** A holder waits at most so long for whoever has its ticket, in milliseconds. */
const LENT_MS = 100;

/** How often a worker tries to connect for the first time. */
const MOST_TRIES = 5;

/** How long after a lock whose listener works another lock is lost, in leases. */
const BESIDE = 0.65;

/** Which part of the calls on keys that are read and written only read. */
const READS = 0.75;

const options = JSON.parse(process.argv[2] as string) as WorkerOptions;
const history = new HistoryFile(options.folder, options.name);
const registers = new Registers(options.registers, history);
const random = new Random(options.seed);
const lent = new Map<number, () => void>();
const realNow = Date.now;
const realMonotonic = performance.now.bind(performance);
/** For how long the machine has slept, in milliseconds. */
let sleptMs = 0;
let lastTicket = 0;
/** The lock whose loss somebody listens to who works for long, and for how long a subscriber of the events does. */
const slowKey = `${options.name} heard`;
let subscriberMs = 0;
const stop = new AbortController();
// Whoever started it was killed, perhaps while this was loaded.
process.on('disconnect', () => stop.signal.aborted || process.exit(1));
if (!process.connected) {
  process.exit(1);
}

const lend: Lend = async (key, owner, ticket, mode = 'write') => {
  const id = ++lastTicket;
  tell({ type: 'ticket', from: options.name, id, key, owner, ticket, mode });
  await Promise.race([new Promise<void>((resolve) => lent.set(id, resolve)), sleep(random.between(0, LENT_MS))]);
  lent.delete(id);
};

const { store, prepare, end } = storeOf(options.source);
const settings = { ttl: options.leaseMs, wait: WAIT_LEASES * options.leaseMs };

@Module({
  imports: [LockModule.forRootAsync({ useFactory: () => ({ store, ...settings }) })],
  providers: [
    AccountService,
    SharingService,
    { provide: 'HISTORY', useValue: history },
    { provide: 'REGISTERS', useValue: registers },
    { provide: 'RANDOM', useValue: random },
    { provide: 'LEND', useValue: lend },
  ],
})
class WorkerModule {}

moveWallClock(0);
subscribe(LOCK_CHANNEL, (message) => hearOfLoss(message as LockEvent));
// All workers connect for the first time at once, and a busy machine may keep one of them waiting for too long.
for (let isReady = !options.isFirst, tries = 1; !isReady; tries++) {
  isReady = await prepare().then(
    () => true,
    (error: unknown) => (error instanceof LockStoreError && tries < MOST_TRIES ? false : Promise.reject(error as Error)),
  );
}
const app = await NestFactory.createApplicationContext(WorkerModule, { logger: false });
const accounts = app.get(AccountService);
const sharing = app.get(SharingService);
history.write({ op: 'start', phase: 'info' });
tell({ type: 'started' });
process.on('message', (message) => void hear(message as WorkerMessage));
history.watchEventLoop();
const { busy, quiet, led, shelves, semaphores } = options.keys;
const candidate = new CandidateOfWorker(app.get(LockService), led, options.leaseMs, history, random);
await Promise.all([
  ...Array.from({ length: 14 }, () => callers(busy, 20)),
  callers(quiet, 1_200),
  ...Array.from({ length: 5 }, () => callers(shelves, 40, readOrWrite)),
  ...Array.from({ length: 5 }, () => callers(semaphores, 40, (key) => sharing.take(key))),
]);
await app.close();
await candidate.ended();
await end();
registers.close();
history.write({ op: 'stop', phase: 'info' });
process.disconnect();

/** One caller after the other, with a pause between them, until the end of the run. */
async function callers(
  keys: readonly string[],
  pauseMs: number,
  use: typeof readOrWrite = (key, other) => accounts.use(key, other),
): Promise<void> {
  while (keys.length > 0 && !stop.signal.aborted) {
    await use(random.pick(keys), random.pick(keys));
    await sleep(random.between(0, pauseMs));
  }
}

function readOrWrite(key: string, other: string): Promise<void> {
  return random.chance(READS) ? sharing.read(key, other) : accounts.use(key, other);
}

async function hear(message: WorkerMessage): Promise<void> {
  if (message.type === 'stop') {
    stop.abort();
  } else if (message.type === 'block') {
    block(message.ms);
    tell({ type: 'done', id: message.id });
  } else if (message.type === 'wall') {
    moveWallClock(message.offsetMs);
    tell({ type: 'done', id: message.id });
  } else if (message.type === 'forceOld') {
    await forceOld(message.key);
  } else if (message.type === 'listener') {
    await loseTwo(message.ms, message.isAbort);
  } else if (message.type === 'nest') {
    await accounts.nest(`${options.name} nest`, options.leaseMs);
  } else if (message.type === 'hold') {
    const { key, ms, isFixed } = message;
    await (isFixed ? accounts.outlive(app.get(LockService), key, ms, () => undefined) : accounts.hold(key, ms));
  } else if (message.type === 'sleep') {
    await fallAsleep(message);
  } else if (message.type === 'newcomer') {
    await inAnother((locks) => accounts.hold(message.key, message.ms, () => undefined, locks));
  } else if (message.type === 'ticket') {
    await accounts.borrow(message.key, message.owner, message.ticket, message.mode);
    tell({ type: 'ticketDone', to: message.from, id: message.id });
  } else if (message.type === 'ticketDone') {
    lent.get(message.id)?.();
  }
}

async function forceOld(key: string): Promise<void> {
  const locks = app.get(LockService);
  // Whether the servers can be reached is another's business.
  const fence = (await locks.operations.inspect(key).catch(() => null))?.fence;
  if (fence !== undefined) {
    await locks.operations.forceRelease(key, { fence: fence - 1 }).catch(() => undefined);
  }
}

/**
 * Of two locks that are lost one after the other, the first has a listener that works; nothing else is to be done
 * there.
 */
async function loseTwo(ms: number, isAbort: boolean): Promise<void> {
  const { leaseMs } = options;
  subscriberMs = isAbort ? 0 : ms;
  await inAnother(async (locks) => {
    const slow = accounts.outlive(locks, slowKey, 2 * leaseMs, isAbort ? () => block(ms) : () => undefined);
    await sleep(BESIDE * leaseMs);
    await Promise.all([slow, accounts.outlive(locks, `${slowKey} too`, 2 * leaseMs, () => undefined)]);
  });
}

function hearOfLoss(event: LockEvent): void {
  if (event.type === 'lost' && event.key === slowKey) {
    block(subscriberMs);
  }
}

/** In an application that starts now, with connections of its own; not at all where it cannot start. */
async function inAnother(use: (locks: LockService) => Promise<void>): Promise<void> {
  const own = storeOf(options.source);
  const module = LockModule.forRoot({ store: own.store, ...settings });
  const other = await NestFactory.createApplicationContext(module, { logger: false, abortOnError: false }).catch(() => undefined);
  if (other) {
    await use(other.get(LockService));
    await other.close();
  }
  await own.end();
}

async function fallAsleep({ id, key, ms, before }: Extract<WorkerMessage, { type: 'sleep' }>): Promise<void> {
  const done = (): void => tell({ type: 'done', id });
  let isTooLate = false;
  const tooLate = setTimeout(() => {
    isTooLate = true;
    done();
  }, before - now());
  await accounts.hold(key, ms, () => {
    if (!isTooLate) {
      clearTimeout(tooLate);
      sleepThrough(ms);
      done();
    }
  });
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

/** The wall clock knows that the machine slept, and the monotonic one does not. */
function sleepThrough(ms: number): void {
  const since = now();
  block(ms);
  sleptMs += ms;
  performance.now = () => realMonotonic() - sleptMs;
  history.write({ op: 'slept', phase: 'info', since });
}

function moveWallClock(offsetMs: number): void {
  Date.now = () => realNow() + options.wallMs + offsetMs;
}
