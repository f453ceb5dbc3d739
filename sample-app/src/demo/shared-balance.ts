import type { OnApplicationShutdown } from '@nestjs/common';

/** The balances that the tasks change, in hundredths. It knows nothing of locks. */
export interface SharedBalance extends OnApplicationShutdown {
  read(account: string): Promise<number>;
  write(account: string, amount: number): Promise<void>;
}

export const SHARED_BALANCE = Symbol('SharedBalance');
