import { ConflictException, NotFoundException, UnprocessableEntityException } from '@nestjs/common';
import { formatAmount } from '../money/amount.js';

/** There is no such customer. HTTP 404. */
export class UnknownCustomerError extends NotFoundException {
  constructor(customerId: string) {
    super(`There is no customer ${customerId}.`);
  }
}

/** The customer has less than is asked for. HTTP 422. */
export class OverdraftError extends UnprocessableEntityException {
  constructor(customerId: string, available: bigint, wanted: bigint) {
    super(`Customer ${customerId} has ${formatAmount(available)}, which is less than ${formatAmount(wanted)}.`);
  }
}

/**
 * A later owner of the lock has touched the row: this one was paused for longer than its lease, and must not write any
 * more. HTTP 409; nothing was written, so the client may send the request again.
 */
export class StaleFenceError extends ConflictException {
  constructor(customerId: string) {
    super(`The balance of customer ${customerId} was changed by somebody else meanwhile. Nothing was written; try again.`);
  }
}
