import type { SharedBalance } from './shared-balance.js';

/** A variable for each account, for tasks in one process. */
export class VariableBalance implements SharedBalance {
  readonly #amounts = new Map<string, number>();

  async read(account: string): Promise<number> {
    return this.#amounts.get(account) ?? 0;
  }

  async write(account: string, amount: number): Promise<void> {
    this.#amounts.set(account, amount);
  }

  onApplicationShutdown(): void {}
}
