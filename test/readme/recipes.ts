import type { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { Transactional, TransactionHost } from '@nestjs-cls/transactional';
import { Processor, WorkerHost } from '@nestjs/bullmq';
import { Inject, Injectable } from '@nestjs/common';
import { Cron, CronExpression } from '@nestjs/schedule';
import type { Job } from 'bullmq';
import { assertLocked, currentLock, DistributedLock, LockKey, lockKey, LockService, outsideLocks } from 'nestjs-distributed-lock';
import { AsyncResource } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import PQueue from 'p-queue';
import { Column, DataSource, Entity, PrimaryColumn, type EntityManager } from 'typeorm';
import { Transactional as TransactionalOfTypeOrm } from 'typeorm-transactional';
import type { PrismaClient } from '../support/prisma.js';

/** Provides a `PrismaClient`. */
export const PRISMA = 'PrismaClient';
/** Provides the `DataSource` of typeorm-transactional. */
export const FOLLOWED = 'followed DataSource';

@Entity('balance')
export class Balance {
  @PrimaryColumn('text', { name: 'customer_id' })
  customerId!: string;
  @Column('int')
  amount!: number;
}

/** The calls that were run, in order. */
export const done: string[] = [];

async function write(manager: EntityManager, customerId: string, amount: number): Promise<void> {
  const balance = await manager.findOneByOrFail(Balance, { customerId });
  await manager.update(Balance, { customerId }, { amount: balance.amount + amount });
}

@Injectable()
export class WithCls {
  constructor(@Inject(TransactionHost) private readonly host: TransactionHost<TransactionalAdapterTypeOrm>) {}

  @DistributedLock('balance:<customerId>')
  @Transactional()
  async credit(@LockKey('customerId') customerId: string, amount: number): Promise<void> {
    await write(this.host.tx, customerId, amount);
  }
}

@Injectable()
export class WithTypeOrmTransactional {
  constructor(@Inject(FOLLOWED) private readonly dataSource: DataSource) {}

  @DistributedLock('balance:<customerId>')
  @TransactionalOfTypeOrm()
  async credit(@LockKey('customerId') customerId: string, amount: number): Promise<void> {
    await write(this.dataSource.manager, customerId, amount);
  }
}

/** The mistake that the page warns of. */
@Injectable()
export class WithClsSwapped {
  constructor(@Inject(TransactionHost) private readonly host: TransactionHost<TransactionalAdapterTypeOrm>) {}

  @Transactional()
  @DistributedLock('balance:<customerId>')
  async credit(customerId: string, amount: number): Promise<void> {
    await write(this.host.tx, customerId, amount);
  }
}

@Injectable()
export class WithTypeOrm {
  constructor(@Inject(DataSource) private readonly dataSource: DataSource) {}

  @DistributedLock('balance:<customerId>')
  async credit(customerId: string, amount: number): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      const balance = await manager.findOneByOrFail(Balance, { customerId });
      balance.amount += amount;
      await manager.save(balance);
    });
  }
}

@Injectable()
export class WithPrisma {
  constructor(@Inject(PRISMA) private readonly prisma: PrismaClient) {}

  @DistributedLock('balance:<customerId>')
  async credit(customerId: string, amount: number): Promise<void> {
    await this.prisma.$transaction(async (tx) => {
      const balance = await tx.balance.findUniqueOrThrow({ where: { customerId } });
      await tx.balance.update({ where: { customerId }, data: { amount: balance.amount + amount } });
    });
  }
}

@Injectable()
export class Jobs {
  @Cron(CronExpression.EVERY_DAY_AT_1AM)
  @DistributedLock({ key: 'job:report', onBusy: 'skip', minHold: '30s' })
  async report(): Promise<void> {
    done.push('report');
  }
}

@Processor('orders')
export class OrderProcessor extends WorkerHost {
  @DistributedLock({ key: 'order:<job.data.orderId>', wait: '30s', maxHold: '5m' })
  async process(job: Job<{ orderId: string }>): Promise<void> {
    const of = { customerId: job.data.orderId };
    const { amount } = await this.dataSource.manager.findOneByOrFail(Balance, of);
    await sleep(20);
    await this.dataSource.manager.update(Balance, of, { amount: amount + 1 });
  }

  constructor(@Inject(DataSource) private readonly dataSource: DataSource) {
    super();
  }
}

@Injectable()
export class Requests {
  private readonly queue = new PQueue({ concurrency: 1 });
  private readonly events = { publish: (order: { id: string }): void => void this.ship(order.id) };

  @DistributedLock('order:<orderId>')
  async request(orderId: string): Promise<void> {
    await this.queue.add(AsyncResource.bind(() => this.settle(orderId)));
  }

  async settle(orderId: string): Promise<void> {
    await sleep(5);
    done.push(`settles ${orderId} in ${currentLock()?.keys.join()}`);
  }

  @DistributedLock('order:<order.id>')
  async place(order: { id: string }): Promise<void> {
    outsideLocks(() => this.events.publish(order));
    await sleep(20);
    done.push(`placed ${order.id}`);
  }

  @DistributedLock('order:<orderId>')
  async ship(orderId: string): Promise<void> {
    done.push(`ships ${orderId}`);
  }
}

/** Of the README. */
@Injectable()
export class Readme {
  constructor(@Inject(LockService) private readonly locks: LockService) {}

  async close(customerId: string): Promise<void> {
    await this.locks.withLock(lockKey`balance:${customerId}`, { by: 'Balances.close' }, () => this.remove(customerId));
  }

  async remove(customerId: string): Promise<void> {
    done.push(`removes ${customerId}`);
  }

  @DistributedLock({ key: 'job:report', onBusy: 'skip' })
  async report(): Promise<void> {
    done.push('report');
  }

  @DistributedLock('balance:<customerId>')
  async recount(customerId: string): Promise<void> {
    const { signal } = assertLocked(lockKey`balance:${customerId}`);
    done.push(`recounts, aborted: ${signal.aborted}`);
  }
}
