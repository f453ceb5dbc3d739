import { Inject, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { assertLocked, DistributedLock, LockModule, lockKey, RedisLockStore } from 'nestjs-distributed-lock';
import { Pool } from 'pg';

@Injectable()
class Balances {
  constructor(@Inject(Pool) private readonly pool: Pool) {}

  @DistributedLock({ key: 'balance:<customerId>', ttl: '5s' })
  async credit(customerId: string, amount: number): Promise<void> {
    const { fence } = assertLocked(lockKey`balance:${customerId}`);
    const first = 'UPDATE balances SET fence = $2 WHERE customer_id = $1 AND fence <= $2 RETURNING amount';
    const { rows } = await this.pool.query<{ amount: number }>(first, [customerId, fence]);
    const bonus = await fetch(`${process.env['SHOP_URL']}/bonus`);
    const write = 'UPDATE balances SET amount = $3 WHERE customer_id = $1 AND fence = $2';
    const { rowCount } = await this.pool.query(write, [customerId, fence, Number(rows[0]?.amount) + amount + Number(await bonus.text())]);
    if (rowCount === 0) {
      throw new Error('a later owner was here');
    }
  }
}

const pool = new Pool({ connectionString: process.env['DATABASE_URL'] });
// The server may have ended a connection while the process was frozen.
pool.on('error', (error) => console.error(error));

@Module({
  imports: [LockModule.forRoot({ store: new RedisLockStore(process.env['REDIS_URL'] ?? ''), wait: '30s' })],
  providers: [Balances, { provide: Pool, useValue: pool }],
})
class AppModule {}

interface Credit {
  readonly customerId: string;
  readonly amount: number;
}

// Once for each instance, which keeps its connections.
const starting = NestFactory.createApplicationContext(AppModule).then((application) => application.enableShutdownHooks());

export async function handler({ customerId, amount }: Credit): Promise<void> {
  const application = await starting;
  await application.get(Balances).credit(customerId, amount);
}
