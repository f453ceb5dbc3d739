import { Processor, WorkerHost } from '@nestjs/bullmq';
import { Transactional } from '@nestjs-cls/transactional';
import { Cron, CronExpression } from '@nestjs/schedule';
import type { Job } from 'bullmq';
import { DistributedLock } from 'nestjs-distributed-lock';
import { Column, Entity, PrimaryColumn, type DataSource } from 'typeorm';

@Entity()
class Balance {
  @PrimaryColumn('text')
  customerId!: string;
  @Column('int')
  amount!: number;
}

/** The part of a generated Prisma client that the recipe uses. */
interface PrismaClient {
  $transaction<T>(body: (tx: PrismaClient) => Promise<T>): Promise<T>;
  balance: { update(query: { where: { customerId: string }; data: { amount: { increment: number } } }): Promise<unknown> };
}

export class Jobs {
  @Cron(CronExpression.EVERY_DAY_AT_1AM)
  @DistributedLock({ key: 'job:report', onBusy: 'skip', minHold: '30s' })
  async report(): Promise<void> {
    await Promise.resolve();
  }
}

export class WithCls {
  @DistributedLock('balance:<customerId>')
  @Transactional()
  async credit(customerId: string, amount: number): Promise<void> {
    await Promise.resolve([customerId, amount]);
  }
}

export class WithTypeOrm {
  constructor(private readonly dataSource: DataSource) {}

  @DistributedLock('balance:<customerId>')
  async credit(customerId: string, amount: number): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      await manager.increment(Balance, { customerId }, 'amount', amount);
    });
  }
}

export class WithPrisma {
  constructor(private readonly prisma: PrismaClient) {}

  @DistributedLock('balance:<customerId>')
  async credit(customerId: string, amount: number): Promise<void> {
    await this.prisma.$transaction(async (tx) => {
      await tx.balance.update({ where: { customerId }, data: { amount: { increment: amount } } });
    });
  }
}

@Processor('orders')
export class OrderProcessor extends WorkerHost {
  @DistributedLock({ key: 'order:<job.data.orderId>', wait: '30s', maxHold: '5m' })
  async process(job: Job<{ orderId: string }>): Promise<void> {
    await Promise.resolve(job.data.orderId);
  }
}
