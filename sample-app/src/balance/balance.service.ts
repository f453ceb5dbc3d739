import { Inject, Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-distributed-lock';
import { Database } from '../database/database.js';
import { balanceKey, type Balance } from './balance.js';
import { OverdraftError } from './balance.errors.js';
import { BalanceRepository } from './balance.repository.js';

/** One step of a batch. */
export interface BalanceChange {
  readonly type: 'credit' | 'debit';
  readonly amount: bigint;
}

/** Everything that changes a balance runs alone for its customer, in all processes that share the lock store. */
@Injectable()
export class BalanceService {
  constructor(
    @Inject(BalanceRepository) private readonly repository: BalanceRepository,
    @Inject(Database) private readonly database: Database,
  ) {}

  async show(customerId: string): Promise<Balance> {
    return { customerId, amount: await this.repository.find(customerId) };
  }

  /** Reads two rows with no change between: many such calls run at once, and changes wait for them. */
  @DistributedLock({ key: (one: string, other: string) => [balanceKey(one), balanceKey(other)], mode: 'read', ttl: '5s' })
  async showBoth(one: string, other: string): Promise<Balance[]> {
    return [await this.show(one), await this.show(other)];
  }

  @DistributedLock({ key: 'balance:<customerId>', ttl: '5s' })
  async credit(customerId: string, amount: bigint): Promise<Balance> {
    return this.change(customerId, amount);
  }

  @DistributedLock({ key: 'balance:<customerId>', ttl: '5s' })
  async debit(customerId: string, amount: bigint): Promise<Balance> {
    return this.change(customerId, -amount);
  }

  /**
   * Locks both customers at once, always in the same order, so that opposite transfers cannot block each other; `debit`
   * and `credit` re-enter. The lock is outside and the transaction inside: the next owner must not read before the
   * commit. A crash in between undoes both halves and frees the locks after their ttl.
   */
  @DistributedLock({ key: (from: string, to: string) => [balanceKey(from), balanceKey(to)], ttl: '5s' })
  async transfer(from: string, to: string, amount: bigint): Promise<readonly [from: Balance, to: Balance]> {
    return this.database.transaction(async () => [await this.debit(from, amount), await this.credit(to, amount)] as const);
  }

  /** All of the changes or none of them, in their order; nobody else's change comes between. */
  @DistributedLock({ key: 'balance:<customerId>', ttl: '5s' })
  async changeAll(customerId: string, changes: readonly BalanceChange[]): Promise<Balance> {
    return this.database.transaction(async () => {
      for (const { type, amount } of changes) {
        await this[type](customerId, amount);
      }
      return this.show(customerId);
    });
  }

  /** A read and then a write, as in real code that decides something in between. */
  protected async change(customerId: string, difference: bigint): Promise<Balance> {
    const before = await this.repository.claim(customerId);
    const amount = before + difference;
    if (amount < 0n) {
      throw new OverdraftError(customerId, before, -difference);
    }
    await this.repository.write(customerId, amount);
    return { customerId, amount };
  }
}
