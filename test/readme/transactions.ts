import { Inject, Injectable, Module } from '@nestjs/common';
import { DistributedLock, LockModule, MemoryLockStore } from 'nestjs-distributed-lock';
import { DataSource } from 'typeorm';
import { addTransactionalDataSource } from 'typeorm-transactional';
import { followTypeOrm, transactions } from '../transaction/recipes';

const store = new MemoryLockStore();

@Module({
  imports: [LockModule.forRoot({ store, transaction: transactions.current })],
})
export class AppModule {}

@Injectable()
export class Points {
  @DistributedLock('points:<customerId>')
  async add(customerId: string, points: number): Promise<void> {
    await Promise.resolve([customerId, points]);
  }
}

@Injectable()
export class Rewards {
  constructor(
    @Inject(DataSource) private readonly dataSource: DataSource,
    @Inject(Points) private readonly points: Points,
  ) {}

  async reward(customerId: string): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      await this.points.add(customerId, 10); // takes the lock, and its method ends here
      await manager.query('INSERT INTO rewards VALUES ($1)', [customerId]);
    }); // commits here
  }
}

export function withDecorators(dataSource: DataSource): DataSource {
  followTypeOrm(dataSource);
  return addTransactionalDataSource(dataSource);
}
