import { DistributedLock, LOCK_CHANNEL, LockKey, lockKey, LockService, type LockEvent } from 'nestjs-distributed-lock';
import { subscribe } from 'node:diagnostics_channel';

interface Balances {
  close(customerId: string, fence?: number): Promise<void>;
  debit(customerId: string, amount: bigint): Promise<void>;
  credit(customerId: string, amount: bigint): Promise<void>;
  report(signal: AbortSignal): Promise<void>;
}

declare const key: string;
declare const orderId: string;
declare const parcel: { ticket: string; orderId: string };
declare const histogram: { record(value: number, attributes: Record<string, string>): void };

export class Service {
  private readonly balances!: Balances;
  private readonly worker!: { send(message: unknown): Promise<void> };

  constructor(private readonly locks: LockService) {}

  async transfer(from: string, to: string, amount: bigint): Promise<void> {
    const keys = [lockKey`balance:${from}`, lockKey`balance:${to}`];
    await this.locks.withLock(keys, { by: 'Balances.transfer' }, async () => {
      await this.balances.debit(from, amount);
      await this.balances.credit(to, amount);
    });
  }

  async report(): Promise<void> {
    await using lock = await this.locks.acquire('report', { by: 'Balances.report', ttl: '1m', maxHold: '10m' });
    await lock.run(() => this.balances.report(lock.signal));
  }

  @DistributedLock('balance:<customerId>')
  async close(@LockKey('customerId') id: string): Promise<void> {
    await this.balances.close(id);
  }

  async closeByHand(customerId: string, locks: LockService): Promise<void> {
    await locks.withLock(lockKey`balance:${customerId}`, { by: 'Balances.close', wait: 0 }, async (lock) => {
      await this.balances.close(customerId, lock.fence);
    });
  }

  async tickets(locks: LockService): Promise<void> {
    await locks.withLock(key, (lock) => this.worker.send({ orderId, ticket: lock.makeTicket() }));
    await locks.withLock(key, { ticket: parcel.ticket }, () => this.ship(parcel.orderId));
  }

  async ship(_orderId: string): Promise<void> {}
}

subscribe(LOCK_CHANNEL, (message) => {
  const event = message as LockEvent;
  if (event.type === 'waited') {
    histogram.record(event.waitedMs, { lock: event.name, gaveUp: event.gaveUp ?? 'no' });
  }
});
