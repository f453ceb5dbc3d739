import { Matches } from 'class-validator';

/**
 * Accepts a customer's number as text. One spelling only: `"01"` and `"1"` would be two lock keys, so they must not be
 * one customer.
 */
export function IsCustomerId(): PropertyDecorator {
  return Matches(/^[1-9]\d{0,8}$/, { message: '$property must be the number of a customer as text, such as "1"' });
}
