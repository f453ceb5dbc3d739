import { LockConfigurationError } from '../../core/words/errors.js';
import { requestLockService } from './locked-instance.js';

const NAMES = Symbol('names of lock key parameters');

/**
 * Names a parameter for the key template of `@DistributedLock`, where its own name is hidden or does not survive
 * minification: `credit(@LockKey('customerId') id: string)`. Throws `LockConfigurationError` for an empty name, and for
 * a name that the method has already; and at the start of the application where the method is not locked.
 */
export function LockKey(name: string): ParameterDecorator {
  return (target, method, index) => {
    if (method === undefined || typeof target === 'function' || typeof name !== 'string' || !/^[^<>.\s]+$/.test(name)) {
      throw new LockConfigurationError(
        `@LockKey(${JSON.stringify(name)}): use it on a parameter of an instance method, with a name without brackets, dots and spaces.`,
      );
    }
    const names = lockKeyNames(target, method);
    const site = `${target.constructor.name}.${String(method)}`;
    if (names.has(index) || [...names.values()].includes(name)) {
      throw new LockConfigurationError(
        `@LockKey('${name}'): ${site} has ${names.has(index) ? 'two names for one parameter' : 'two parameters of this name'}. ` +
          'Give each parameter one name of its own.',
      );
    }
    Reflect.defineMetadata(NAMES, new Map(names).set(index, name), target, method);
    // Decorators of the method come after the decorators of its parameters.
    requestLockService(target, { site, store: 'default', isUnlocked: true });
  };
}

/** The names that `@LockKey` gave to the parameters of a method, by position. */
export function lockKeyNames(target: object, method: string | symbol): ReadonlyMap<number, string> {
  return (Reflect.getOwnMetadata(NAMES, target, method) as ReadonlyMap<number, string> | undefined) ?? new Map();
}
