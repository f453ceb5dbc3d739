import { Type } from 'class-transformer';
import { ArrayMaxSize, ArrayNotEmpty, IsArray, IsIn, IsObject, Matches, ValidateNested } from 'class-validator';
import { IsCustomerId } from '../balance/is-customer-id.decorator.js';
import { IsAmount } from '../money/is-amount.decorator.js';

/** An account as the banking system outside names it. All of a customer's sub-accounts share the one balance. */
export class AccountDto {
  @IsCustomerId()
  readonly customerNumber!: string;

  @Matches(/^\d{1,4}$/, { message: '$property must be one to four digits as text, such as "1"' })
  readonly subAccountNumber!: string;

  @IsIn(['EUR'])
  readonly currencyCode!: string;
}

export class BatchEntryDto {
  @IsIn(['credit', 'debit'])
  readonly type!: 'credit' | 'debit';

  @IsAmount()
  readonly amount!: string;
}

/** The body of a batch. `@IsObject` beside `@ValidateNested`, which takes an empty list for a valid object. */
export class BatchDto {
  @IsObject()
  @ValidateNested()
  @Type(() => AccountDto)
  readonly account!: AccountDto;

  @IsArray()
  @ArrayNotEmpty()
  @ArrayMaxSize(100)
  @IsObject({ each: true })
  @ValidateNested({ each: true })
  @Type(() => BatchEntryDto)
  readonly entries!: BatchEntryDto[];
}
