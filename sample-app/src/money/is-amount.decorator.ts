import { Matches } from 'class-validator';
import { AMOUNT } from './amount.js';

/** Accepts a positive amount as text, such as `"12.50"`; a JSON number would already have been a float. */
export function IsAmount(): PropertyDecorator {
  return Matches(AMOUNT, { message: '$property must be a positive amount as text, such as "12.50"' });
}
