import { Inject, Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-distributed-lock';
import { Database } from '../database/database.js';

interface TotalRow {
  readonly total: number;
}

/** The total of a customer's points: read, then written, under the lock of the customer. */
@Injectable()
export class PointsService {
  constructor(@Inject(Database) private readonly database: Database) {}

  async total(customerId: string): Promise<number> {
    const [row] = await this.database.query<TotalRow>('SELECT total FROM points WHERE customer_id = $1', [customerId]);
    return row?.total ?? 0;
  }

  @DistributedLock({ key: 'points:<customerId>', ttl: '5s' })
  async add(customerId: string, points: number): Promise<number> {
    const total = (await this.total(customerId)) + points;
    await this.database.query(
      'INSERT INTO points (customer_id, total) VALUES ($1, $2) ON CONFLICT (customer_id) DO UPDATE SET total = excluded.total',
      [customerId, total],
    );
    return total;
  }
}
