import { LockConfigurationError } from './errors.js';
import { shown } from './shown.js';

/** Throws `LockConfigurationError` for a prefix that could not be told from the key after it, or would move Redis keys to other slots. */
export function checkPrefix(prefix: unknown): string {
  if (typeof prefix !== 'string' || !/^[^{}%\s]{1,200}$/.test(prefix)) {
    throw new LockConfigurationError(
      `LockModule: prefix is ${shown(prefix)}. Use 1 to 200 characters without braces, '%' and white space, such as 'lock'.`,
    );
  }
  return prefix;
}
