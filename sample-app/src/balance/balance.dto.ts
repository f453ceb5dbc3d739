import { IsAmount } from '../money/is-amount.decorator.js';
import { IsCustomerId } from './is-customer-id.decorator.js';

/** The path of every balance endpoint. */
export class CustomerParams {
  @IsCustomerId()
  readonly customerId!: string;
}

/** The path of two balances. */
export class PairParams extends CustomerParams {
  @IsCustomerId()
  readonly otherId!: string;
}

/** The body of a credit or debit. */
export class AmountDto {
  @IsAmount()
  readonly amount!: string;
}

/** The body of a transfer. */
export class TransferDto extends AmountDto {
  @IsCustomerId()
  readonly to!: string;
}
