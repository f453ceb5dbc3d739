import { expect } from '@jest/globals';
import { LockKeyError } from '../../../lib/core/words/errors';
import { lockKey } from '../../../lib/core/words/lock-key';
import { compileKeyTemplate } from '../../../lib/nest/keys/key-template';
import { ParameterNames } from '../../../lib/nest/keys/parameter-names';

const source = new ParameterNames(async (orderId: unknown): Promise<unknown> => orderId);
const keyOfArguments = compileKeyTemplate('order:<orderId>', { given: new Map(), source }, 'Orders.ship');

/** The key of a value in a template, which `lockKey` has to make too. */
export function keyOf(value: unknown): string {
  const key = keyOfArguments([value]);
  expect(lockKey`order:${value}`).toBe(key);
  return key;
}

/** The refusal of a value, which is that of `lockKey` too. */
export function refusalOf(value: unknown): LockKeyError {
  const [refusal, other] = [() => keyOfArguments([value]), () => lockKey`order:${value}`].map((make) => {
    try {
      make();
    } catch (error) {
      expect(error).toBeInstanceOf(LockKeyError);
      return error as LockKeyError;
    }
    throw new Error('nothing was thrown');
  }) as [LockKeyError, LockKeyError];
  expect(other.detail).toBe(refusal.detail.replaceAll('<orderId>', 'value 1').replace(/^.*'order:value 1'/, 'lockKey`order:${…}`'));
  return refusal;
}
