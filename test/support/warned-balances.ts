import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { DistributedLock, LockModule, MemoryLockStore, type LockModuleOptions } from 'nestjs-distributed-lock';

/** A caller of locked methods, which may give them a transaction. */
@Injectable()
export class Balances {
  @DistributedLock('balance:<customerId>')
  async credit(customerId: string, given?: unknown): Promise<unknown> {
    return [customerId, given];
  }

  @DistributedLock('balance:<customerId>')
  async debit(customerId: string, given?: unknown): Promise<unknown> {
    return this.credit(customerId, given);
  }
}

/** An application with `Balances`, and a provider of a library. */
export async function openBalances(options: LockModuleOptions = {}, provider: object = {}): Promise<TestingModule> {
  // A class anew: what was said is remembered for each method.
  class Fresh extends Balances {
    @DistributedLock('balance:<customerId>')
    override async credit(customerId: string, given?: unknown): Promise<unknown> {
      return [customerId, given];
    }
  }
  const module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store: new MemoryLockStore(), ...options })],
    providers: [
      { provide: Balances, useClass: Fresh },
      { provide: 'of a library', useValue: provider },
    ],
  }).compile();
  module.useLogger(false);
  return module;
}
