import { Inject, Injectable } from '@nestjs/common';
import { assertLocked } from 'nestjs-distributed-lock';
import { Database } from '../database/database.js';
import { balanceKey } from './balance.js';
import { StaleFenceError, UnknownCustomerError } from './balance.errors.js';

/** PostgreSQL hands out a bigint as text, PGlite as a number where it is safe. */
interface AmountRow {
  readonly amount: string | number | bigint;
}

/**
 * The rows. Changing a row takes two steps, a read and a write, between which any other process may run: only the lock
 * keeps them together, and only the fence keeps out an owner whose lock has ended without its knowledge.
 */
@Injectable()
export class BalanceRepository {
  constructor(@Inject(Database) private readonly database: Database) {}

  /** Reads without a lock: for showing, never for changing. */
  async find(customerId: string): Promise<bigint> {
    const [row] = await this.database.query<AmountRow>('SELECT amount FROM balances WHERE customer_id = $1', [customerId]);
    if (!row) {
      throw new UnknownCustomerError(customerId);
    }
    return BigInt(row.amount);
  }

  /**
   * Reads for a change. The row claims the fence already here: if only writes did, an older owner could still write
   * between the read and the write of a newer one.
   */
  async claim(customerId: string): Promise<bigint> {
    const [row] = await this.database.query<AmountRow>(
      'UPDATE balances SET fence = $2 WHERE customer_id = $1 AND fence <= $2 RETURNING amount',
      [customerId, this.fenceOf(customerId)],
    );
    if (!row) {
      await this.find(customerId);
      throw new StaleFenceError(customerId);
    }
    return BigInt(row.amount);
  }

  /** Writes what was worked out from `claim`. */
  async write(customerId: string, amount: bigint): Promise<void> {
    const rows = await this.database.query('UPDATE balances SET amount = $2 WHERE customer_id = $1 AND fence = $3 RETURNING customer_id', [
      customerId,
      amount,
      this.fenceOf(customerId),
    ]);
    if (rows.length === 0) {
      throw new StaleFenceError(customerId);
    }
  }

  /** Refuses code that forgot the lock, or has lost it. */
  protected fenceOf(customerId: string): number {
    const key = balanceKey(customerId);
    return assertLocked(key).fenceOf(key);
  }
}
