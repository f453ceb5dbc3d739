import { jest } from '@jest/globals';
import { Injectable, Logger } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { DistributedLock, LockModule, LockService, MemoryLockStore, type LockModuleOptions } from 'nestjs-distributed-lock';

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
async function openBalances(options: LockModuleOptions = {}, provider: object = {}): Promise<TestingModule> {
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

/** An application of one test, and what is logged meanwhile. */
export class Warned {
  readonly warnings: string[] = [];
  #module: TestingModule | undefined;

  constructor() {
    beforeEach(() => {
      this.warnings.length = 0;
      jest.spyOn(Logger.prototype, 'warn').mockImplementation((message: unknown) => void this.warnings.push(String(message)));
    });
    afterEach(async () => {
      jest.restoreAllMocks();
      await this.#close();
    });
  }

  get locks(): LockService {
    return (this.#module as TestingModule).get(LockService);
  }

  /** Balances in another application, after the end of the one before. */
  async start(options: LockModuleOptions = {}, provider: object = {}): Promise<Balances> {
    await this.#close();
    this.#module = await openBalances(options, provider);
    return this.#module.get(Balances);
  }

  /**
   * Gives a transaction to calls, by `give`, which first gives what is there outside of one; expects one warning, of
   * the transaction.
   */
  async expectOneWarning(run: (give: (given: unknown) => Promise<unknown>) => Promise<unknown>, name: string): Promise<void> {
    const balances = await this.start();
    let before: number | undefined;
    await run(async (given) => {
      await balances.credit('1', given);
      before ??= this.warnings.length;
      await balances.credit('2', given);
      return undefined;
    });
    // The first one was given outside of a transaction.
    expect(before).toBe(0);
    expect(this.warnings).toEqual([expect.stringContaining(`Fresh.credit takes its lock inside a transaction: it was given ${name}.`)]);
  }

  async #close(): Promise<void> {
    const module = this.#module;
    this.#module = undefined;
    await module?.close();
  }
}
