import { Metadata, status } from '@grpc/grpc-js';
import { LockLostError, LockNotAcquiredError, outsideLocks, TransactionScope, type LockService } from 'nestjs-distributed-lock';
import { firstValueFrom, type Observable } from 'rxjs';
import { MemoryLockStore } from '../../lib/memory/memory-lock-store';
import { grpcAnswer } from '../../lib/nest/grpc-answer';
import { makeLocks, type TestSettings } from '../support/make-locks';
import { saying } from '../support/saying';
import { playTime, sleep } from '../support/virtual-time';
import { Erp, FairErp, Prices, type ErpClient, type PriceFiles } from './sharing';

/** Two processes, as far as locks are concerned. */
function twoProcesses(settings: TestSettings = {}): [LockService, LockService] {
  const store = new MemoryLockStore();
  return [makeLocks(store, settings), makeLocks(store, settings)];
}

/** Prices that take time to be read and written. */
class SlowFiles implements PriceFiles {
  readonly prices = new Map<string, number>();
  reading = 0;
  mostReading = 0;

  async read(_shop: string, item: string): Promise<number> {
    this.mostReading = Math.max(this.mostReading, ++this.reading);
    await sleep(7);
    this.reading--;
    return this.prices.get(item) ?? 0;
  }

  async write(_shop: string, item: string, price: number): Promise<void> {
    await sleep(11);
    this.prices.set(item, price);
  }

  async list(): Promise<readonly string[]> {
    return [...this.prices.keys()];
  }
}

/** Counts the calls that it has at once: of each tenant, and in all. */
class SlowErp implements ErpClient {
  readonly #now = new Map<string, number>();
  readonly most = new Map<string, number>();

  async sync(tenant: string): Promise<string> {
    this.#add(tenant, 1);
    this.#add('all', 1);
    await sleep(20);
    this.#add(tenant, -1);
    this.#add('all', -1);
    return tenant;
  }

  #add(of: string, more: number): void {
    const now = (this.#now.get(of) ?? 0) + more;
    this.#now.set(of, now);
    this.most.set(of, Math.max(now, this.most.get(of) ?? 0));
  }
}

const times = <T>(count: number, run: (at: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, at) => run(at)));

describe('docs/read-locks.md', () => {
  playTime();

  test('quotes run at once, and see the prices of one list', async () => {
    const files = new SlowFiles();
    const processes = twoProcesses().map((locks) => locks.attach(new Prices(files, locks)));
    const items = ['tea', 'cup', 'pot'];
    const sums = new Set<number>();
    const quotes = times(40, async (at) => {
      await sleep(at * 3);
      sums.add(await (processes[at % 2] as Prices).quote('a', items));
    });
    for (const price of [1, 2, 3]) {
      await (processes[0] as Prices).replace('a', new Map(items.map((item) => [item, price])));
    }
    await quotes;
    expect([...sums].filter((sum) => sum % 3 !== 0)).toEqual([]);
    expect(sums.size).toBeGreaterThan(1);
    expect(files.mostReading).toBeGreaterThan(items.length);
    expect(await (processes[1] as Prices).names('a')).toEqual(items);
    await expect((processes[0] as Prices).write('a', 'tea', 9)).rejects.toThrow(
      saying('Lock "prices:a" is not held by the code that runs here'),
    );
  });

  test('a lock of read mode lasts until the commit too, and the transaction cannot write then', async () => {
    const transactions = new TransactionScope();
    const [locks, other] = twoProcesses({ transaction: transactions.current });
    await transactions.run(async () => {
      await locks.withLock('k', { mode: 'read' }, () => undefined);
      expect(await other.operations.inspect('k')).toMatchObject({ shares: 'read', holds: 1 });
      await expect(locks.withLock('k', () => undefined)).rejects.toMatchObject({ reason: 'upgrade', status: 423 });
    });
    await sleep(10);
    expect(await other.operations.inspect('k')).toBeNull();
  });

  test('a call of read mode inside one that writes is in write mode, and so may write', async () => {
    const [locks] = twoProcesses();
    const inner = (): Promise<string> => locks.withLock('k', () => 'written');
    expect(await locks.withLock('k', () => locks.withLock('k', { mode: 'read' }, inner))).toBe('written');
  });

  test('a reader that crashed keeps writers out until its lease is over, and no longer', async () => {
    const [crashed, other] = twoProcesses();
    await crashed.acquire('k', { mode: 'read', ttl: 1_000, renew: false });
    const began = performance.now();
    await other.withLock('k', { mode: 'read' }, () => undefined);
    expect(performance.now() - began).toBeLessThan(10);
    await other.withLock('k', () => undefined);
    expect(performance.now() - began).toBeGreaterThan(900);
    expect(performance.now() - began).toBeLessThan(1_500);
  });
});

describe('docs/semaphores.md', () => {
  playTime();

  test('the examples run at most so many calls at once', async () => {
    const client = new SlowErp();
    const [one, other] = twoProcesses({ wait: 60_000 }).map((locks) => locks.attach(new Erp(client, locks))) as [Erp, Erp];
    await Promise.all([times(70, () => one.sync('a')), times(70, () => other.ask('a'))]);
    await Promise.all([times(20, () => one.syncBy({ id: 'b', plan: 'small' })), times(20, () => other.upload('c'))]);
    await times(60, () => one.shape('d'));
    expect(Object.fromEntries(client.most)).toMatchObject({ a: 50, b: 5, c: 3, d: 50 });
  });

  test('the recipe gives each tenant its share of the whole', async () => {
    const client = new SlowErp();
    const processes = twoProcesses().map((locks) => locks.attach(new FairErp(client, locks)));
    const busy = times(200, (at) => (processes[at % 2] as FairErp).sync('busy'));
    const others = times(100, (at) => (processes[at % 2] as FairErp).sync(`tenant ${at % 7}`));
    const began = performance.now();
    await (processes[0] as FairErp).sync('quiet');
    const waited = performance.now() - began;
    await Promise.all([busy, others]);
    expect(client.most.get('busy')).toBe(10);
    expect(client.most.get('all')).toBe(50);
    // Two rounds of the others at most, and not the twenty of the busy one.
    expect(waited).toBeLessThan(100);
  });

  test('calls that are made inside share the permit, and run at once', async () => {
    const client = new SlowErp();
    const [locks] = twoProcesses();
    await locks.withPermit('k', 1, () => times(5, () => locks.withPermit('k', 1, () => client.sync('inside'))));
    expect(client.most.get('inside')).toBe(5);
  });

  test('a deploy that lowers the count is safe at once, one that raises it opens later, and nobody is refused', async () => {
    const client = new SlowErp();
    const [older, newer] = twoProcesses({ wait: 60_000 });
    const run = (locks: LockService, permits: number) => (): Promise<string> => locks.withPermit('k', permits, () => client.sync('k'));
    await Promise.all([times(30, run(older, 2)), times(30, run(newer, 5))]);
    expect(client.most.get('k')).toBeLessThanOrEqual(5);
    client.most.clear();
    await newer.withPermit('k', 2, () => outsideLocks(() => times(30, (at) => run(at % 2 ? older : newer, at % 2 ? 5 : 2)())));
    expect(client.most.get('k')).toBe(1);
  });

  test('a permit that is lost tells its code, and its call rejects; a forced release takes all of them', async () => {
    const [locks, other] = twoProcesses();
    const told: boolean[] = [];
    const calls = [locks, other].map((one) =>
      one.withPermit('k', 2, async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        told.push(signal.aborted);
      }),
    );
    const outcomes = Promise.allSettled(calls);
    await sleep(10);
    const stored = await locks.operations.inspect('k');
    expect(stored).toMatchObject({ shares: 2, holds: 2 });
    await locks.operations.forceRelease('k', { fence: stored?.fence ?? 0 });
    const reasons = (await outcomes).map((outcome) => (outcome as PromiseRejectedResult).reason as unknown);
    expect(reasons).toEqual([expect.any(LockLostError), expect.any(LockLostError)]);
    expect(told).toEqual([true, true]);
  });

  test('minHold keeps a permit taken, and maxHold ends one', async () => {
    const [locks, other] = twoProcesses();
    const began = performance.now();
    await locks.withPermit('k', 1, { minHold: 1_000 }, () => undefined);
    expect(performance.now() - began).toBeLessThan(500);
    await other.withPermit('k', 1, () => undefined);
    expect(performance.now() - began).toBeGreaterThanOrEqual(1_000);
    await locks.withPermit('k', 1, { maxHold: 1_000, ttl: 1_000 }, async ({ signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'maxHold' });
    });
    expect(performance.now() - began).toBeLessThan(2_500);
  });

  test('a call that is refused says when the first lease ends', async () => {
    const [locks, other] = twoProcesses();
    await locks.acquirePermit('k', 2, { ttl: 10_000, renew: false });
    await locks.acquirePermit('k', 2, { ttl: 2_000, renew: false });
    const refused: unknown = await other.withPermit('k', 2, { wait: 0 }, () => undefined).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(LockNotAcquiredError);
    expect((refused as LockNotAcquiredError).retryAfterMs).toBeGreaterThan(1_500);
    expect((refused as LockNotAcquiredError).retryAfterMs).toBeLessThanOrEqual(2_000);
    const answer = grpcAnswer([{}, new Metadata()], (refused as LockNotAcquiredError).toJSON()) as Observable<unknown>;
    await expect(firstValueFrom(answer)).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED });
  });

  test('a permit that was taken in a transaction lasts until the commit', async () => {
    const transactions = new TransactionScope();
    const [locks, other] = twoProcesses({ transaction: transactions.current });
    await transactions.run(async () => {
      await locks.withPermit('k', 2, () => undefined);
      expect(await other.operations.inspect('k')).toMatchObject({ shares: 2, holds: 1 });
    });
    await sleep(10);
    expect(await other.operations.inspect('k')).toBeNull();
  });
});
