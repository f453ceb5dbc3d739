import { lockKey } from 'nestjs-distributed-lock';
import { formatAmount } from '../money/amount.js';

/** The money of a customer, in hundredths. */
export interface Balance {
  readonly customerId: string;
  readonly amount: bigint;
}

/** A balance as clients see it. */
export interface BalanceView {
  readonly customerId: string;
  readonly balance: string;
}

/** The key of everything that changes a balance; the same as the template `'balance:<customerId>'`. */
export function balanceKey(customerId: string): string {
  return lockKey`balance:${customerId}`;
}

export function viewOf({ customerId, amount }: Balance): BalanceView {
  return { customerId, balance: formatAmount(amount) };
}
