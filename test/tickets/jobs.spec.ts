import { BullModule, getQueueToken, Processor, WorkerHost } from '@nestjs/bullmq';
import { Inject } from '@nestjs/common';
import { QueueEvents, Worker, type Job, type Queue } from 'bullmq';
import { outsideLocks } from 'nestjs-distributed-lock';
import { enterTicketsOf, withTickets } from 'nestjs-distributed-lock/tickets';
import { Applications, Shop, Stock, type Parts } from './applications';

interface Reservation {
  readonly id: string;
}

const seen: object[] = [];

@Processor('reservations')
class Reservations extends WorkerHost {
  constructor(@Inject(Stock) private readonly stock: Stock) {
    super();
  }
  process(job: Job<Reservation>): Promise<number> {
    return enterTicketsOf(job.data, () => {
      seen.push({ ...job.data });
      return this.stock.reserve(job.data.id);
    });
  }
}

/** Does not accept tickets. */
@Processor('reservations')
class ClosedReservations extends WorkerHost {
  constructor(@Inject(Stock) private readonly stock: Stock) {
    super();
  }
  process(job: Job<Reservation>): Promise<number> {
    return this.stock.reserve(job.data.id);
  }
}

let applications: Applications;
let events: QueueEvents;
let connection: { host: string; port: number };
beforeAll(async () => {
  applications = await Applications.open();
  connection = { host: '127.0.0.1', port: applications.redisPort };
});
beforeEach(async () => {
  events = new QueueEvents('reservations', { connection });
  await events.waitUntilReady();
});
afterEach(async () => {
  await events.close();
  await applications.end();
});
afterAll(() => applications.close());

const queues = (): NonNullable<Parts['imports']> => [
  BullModule.forRoot({ connection }),
  BullModule.registerQueue({ name: 'reservations' }),
];

async function startShop(): Promise<[shop: Shop, queue: Queue<Reservation>]> {
  const shop = await applications.start({ imports: queues() });
  return [shop.get(Shop), shop.get<Queue<Reservation>>(getQueueToken('reservations'))];
}

test('a job that was added inside the lock enters it in the worker, which sees no tickets', async () => {
  const [shop, queue] = await startShop();
  await applications.start({ imports: queues(), providers: [Reservations] });
  await shop.order('1', async (fence) => {
    const job = await queue.add('reserve', withTickets({ id: '1' }));
    expect(await job.waitUntilFinished(events)).toBe(fence);
  });
  expect(seen).toEqual([{ id: '1' }]);
  expect(await shop.locks.operations.inspect('order:1')).toBeNull();
});

test('so it does in a plain Worker', async () => {
  const [shop, queue] = await startShop();
  const stock = (await applications.start({})).get(Stock);
  const worker = outsideLocks(
    () =>
      new Worker<Reservation, number>('reservations', (job) => enterTicketsOf(job.data, () => stock.reserve(job.data.id)), { connection }),
  );
  try {
    await shop.order('1', async (fence) => {
      const job = await queue.add('reserve', withTickets({ id: '1' }));
      expect(await job.waitUntilFinished(events)).toBe(fence);
    });
  } finally {
    await worker.close();
  }
});

test('a method that says not what it returns is a promise inside, too', async () => {
  const shop = await applications.shop();
  const stock = (await applications.start({})).get(Stock);
  await shop.order('1', async (fence) => {
    const payload = withTickets({ id: '1' });
    expect(await outsideLocks(() => enterTicketsOf(payload, () => stock.reserveUndeclared('1')))).toBe(fence);
  });
});

test('in a worker without the opt-in it waits for the one that added it, and fails', async () => {
  const [shop, queue] = await startShop();
  await applications.start({ wait: 300, imports: queues(), providers: [ClosedReservations] });
  await shop.order('1', async () => {
    const job = await queue.add('reserve', withTickets({ id: '1' }));
    await expect(job.waitUntilFinished(events)).rejects.toThrow('The lock was not acquired: other calls hold it or wait for it.');
  });
});

test('a job that runs after the lock has ended fails, also when it is repeated, and the reason repeats no tickets', async () => {
  const [shop, queue] = await startShop();
  const job = await shop.order('1', () => queue.add('reserve', withTickets({ id: '1' }), { attempts: 2 }));
  await applications.start({ imports: queues(), providers: [Reservations] });
  await expect(job.waitUntilFinished(events)).rejects.toThrow('The lock was lost before the call ended (released).');
  const { failedReason, stacktrace, attemptsMade, data } = (await queue.getJob(job.id as string)) as Job<{ lockTickets?: string }>;
  expect(attemptsMade).toBe(2);
  expect(`${failedReason} ${stacktrace?.join(' ')}`).not.toContain((data.lockTickets as string).slice(0, 30));
});
