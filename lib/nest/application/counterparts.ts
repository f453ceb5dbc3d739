import { LockConfigurationError } from '../../core/words/errors.js';

/**
 * Has calls of methods that other libraries have, and `owner` has not, throw a `LockConfigurationError` that names the
 * counterpart. The proxy stands above `owner`, where only names arrive that are found nowhere: no other call comes
 * here, and `in`, mocks and listings see nothing of it.
 */
export function nameCounterparts(owner: object, site: string, counterparts: Readonly<Record<string | symbol, string>>): void {
  const above = Object.create(Object.getPrototypeOf(owner) as object) as object;
  const get = (target: object, name: string | symbol, receiver: unknown): unknown =>
    Object.hasOwn(counterparts, name)
      ? () => {
          throw new LockConfigurationError(`${site}.${String(name)}() does not exist. Use ${counterparts[name]}.`);
        }
      : Reflect.get(target, name, receiver);
  Object.setPrototypeOf(owner, new Proxy(above, { get }));
}
