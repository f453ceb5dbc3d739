import { Inject, Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { PointsService } from './points.service.js';

/**
 * Opens its transaction above the locked method: `PointsService.add` ends before the commit. The option `transaction`
 * in lock-options.ts keeps the lock until then; without it the next owner would read the total from before the commit.
 */
@Injectable()
export class RewardService {
  constructor(
    @Inject(Database) private readonly database: Database,
    @Inject(PointsService) private readonly points: PointsService,
  ) {}

  /** Adds points and writes them down: both, or neither. */
  async reward(customerId: string, points: number): Promise<number> {
    return this.database.transaction(async () => {
      const total = await this.points.add(customerId, points);
      await this.database.query('INSERT INTO rewards (customer_id, points) VALUES ($1, $2)', [customerId, points]);
      return total;
    });
  }
}
