import { assertLocked, DistributedLock, lockKey } from 'nestjs-distributed-lock';

export class Jobs {
  @DistributedLock({ key: 'job:report', onBusy: 'skip' })
  async report(): Promise<void> {
    await Promise.resolve();
  }

  @DistributedLock('balance:<customerId>')
  async recount(customerId: string): Promise<void> {
    const { signal } = assertLocked(lockKey`balance:${customerId}`);
    await Promise.resolve(signal);
  }
}
