// The code of docs/read-locks.md and docs/semaphores.md.
import { Injectable } from '@nestjs/common';
import { assertLocked, DistributedLock, DistributedSemaphore, lockKey, type LockService } from 'nestjs-distributed-lock';

export interface PriceFiles {
  read(shop: string, item: string): Promise<number>;
  write(shop: string, item: string, price: number): Promise<void>;
  list(shop: string): Promise<readonly string[]>;
}

@Injectable()
export class Prices {
  constructor(
    private readonly files: PriceFiles,
    private readonly locks: LockService,
  ) {}

  @DistributedLock({ key: 'prices:<shop>', mode: 'read' })
  async quote(shop: string, items: readonly string[]): Promise<number> {
    const prices = await Promise.all(items.map((item) => this.files.read(shop, item)));
    assertLocked(lockKey`prices:${shop}`); // nobody has written meanwhile
    return prices.reduce((sum, price) => sum + price, 0);
  }

  @DistributedLock({ key: 'prices:<shop>', wait: '1m' })
  async replace(shop: string, prices: ReadonlyMap<string, number>): Promise<void> {
    for (const [item, price] of prices) {
      await this.write(shop, item, price);
    }
  }

  async write(shop: string, item: string, price: number): Promise<void> {
    assertLocked(lockKey`prices:${shop}`, 'write');
    await this.files.write(shop, item, price);
  }

  async names(shop: string, locks: LockService = this.locks): Promise<readonly string[]> {
    return locks.withLock(lockKey`prices:${shop}`, { mode: 'read', by: 'Prices.names' }, () => this.files.list(shop));
  }
}

export interface ErpClient {
  sync(tenant: string, signal?: AbortSignal): Promise<string>;
}

export interface Tenant {
  readonly id: string;
  readonly plan: 'large' | 'small';
}

@Injectable()
export class Erp {
  constructor(
    private readonly client: ErpClient,
    private readonly locks: LockService,
  ) {}

  @DistributedSemaphore({ key: 'erp:<tenant>', permits: 50, wait: '30s' })
  async sync(tenant: string): Promise<string> {
    return this.client.sync(tenant);
  }

  @DistributedSemaphore({ key: 'erp:<tenant.id>', permits: ({ plan }: Tenant) => (plan === 'large' ? 50 : 5) })
  async syncBy(tenant: Tenant): Promise<string> {
    return this.client.sync(tenant.id);
  }

  @DistributedSemaphore({ key: 'erp:<tenant>', permits: 50, onUnavailable: 'run' })
  async shape(tenant: string): Promise<string> {
    return this.client.sync(tenant);
  }

  async ask(tenant: string, locks: LockService = this.locks): Promise<string> {
    return locks.withPermit(lockKey`erp:${tenant}`, 50, { by: 'Erp.ask', wait: '30s' }, ({ signal }) => this.client.sync(tenant, signal));
  }

  async upload(tenant: string): Promise<string> {
    await using permit = await this.locks.acquirePermit('erp-uploads', 3, { by: 'Erp.upload', maxHold: '10m' });
    return await permit.run(() => this.client.sync(tenant, permit.signal));
  }
}

@Injectable()
export class FairErp {
  constructor(
    private readonly client: ErpClient,
    private readonly locks: LockService,
  ) {}

  @DistributedSemaphore({ key: 'erp:<tenant>', permits: 10, wait: '30s' })
  async sync(tenant: string): Promise<string> {
    return this.locks.withPermit('erp', 50, { by: 'FairErp.sync', wait: '30s' }, () => this.client.sync(tenant));
  }
}
