import { isLockError, LockConfigurationError, LockStoreError, replyCode, type LockError } from '../core/words/errors.js';
import { fenceTooHigh, messageOf } from '../kit/refusals.js';
import type { Dialect } from './dialect.js';

/** The statement was not sent, because there was no connection for it. */
export class NotSent extends Error {
  constructor(cause: Error | string = 'the pool gave none') {
    super(typeof cause === 'string' ? cause : cause.message, { cause });
  }
}

/** The statement was committed here, and its wait for a synchronous standby was cancelled: a failover may lose it. */
export class NotReplicated extends Error {
  constructor() {
    super('the wait for a synchronous standby was cancelled');
  }
}

/**
 * The error of a failed statement. An error that the server answered is a known failure, unless it ended the statement
 * or its connection. After a timeout or a broken connection it is unknown whether the statement was carried out.
 */
export function toLockError(error: unknown, key: string, dialect: Dialect): LockError {
  if (isLockError(error)) {
    return error;
  }
  const { name, table } = dialect;
  const failure = error instanceof Error ? error : new Error(String(error));
  const notSent = failure instanceof NotSent;
  const source = notSent && failure.cause instanceof Error ? failure.cause : failure;
  const cause = copyOf(source);
  const counter = /^FENCE (\d+)$/.exec(source.message)?.[1];
  if (counter !== undefined) {
    return fenceTooHigh(key, counter, `delete the row of the key from ${table}`);
  }
  const subject = key === '' ? '' : `Lock "${key}": `;
  const cure = dialect.cureOf(source);
  // A call about a key comes after the start. The login worked then, and may work again: a release is repeated until
  // then.
  const mayPass = notSent && key !== '';
  if (cure !== undefined && !mayPass) {
    return new LockConfigurationError(`${subject}${name} refused: ${cause.message}. ${cure}`, key, {
      cause,
      ofStore: !dialect.isOfKey(source),
    });
  }
  if (!notSent && !dialect.isRefusal(source)) {
    return new LockStoreError(`${subject}${name} ${unknownOutcome(failure, cause)}`, key, { cause, unknown: true });
  }
  const message = `${notSent ? 'there is no connection: ' : ''}${cause.message}`;
  const nextStep = cure === undefined ? dialect.nextStep(source) : `. ${cure}`;
  return new LockStoreError(`${subject}${name} failed: ${message}${nextStep}`, key, { cause, unknown: false });
}

/** The text for a statement of which nobody knows whether it was carried out, and the next step. */
function unknownOutcome(failure: Error, cause: Error): string {
  const did = replyCode(cause) === undefined ? 'did not answer' : 'ended the statement';
  const reach = failure instanceof NotReplicated ? 'the standby is there' : 'it runs and can be reached from here';
  return `${did}: ${cause.message}. Make sure that ${reach}.`;
}

export const REPEAT = 'The call may be repeated once that is over.';

/** The error of a command that twice in a row reached the server after its sender had stopped waiting. */
export function tooLate(key: string, { name }: Dialect): LockStoreError {
  return new LockStoreError(
    `Lock "${key}": ${name} was reached too late, and granted nothing. Find out what holds up the network, or raise ttl.`,
    key,
    { unknown: false },
  );
}

/**
 * A copy of the error without the additions of the server or the driver, such as values of the statement, which must
 * not reach a log.
 */
function copyOf(error: Error): Error {
  const copy = new Error(messageOf(error).replace(/\.$/, ''));
  copy.name = error.name;
  return 'code' in error ? Object.assign(copy, { code: error.code }) : copy;
}
