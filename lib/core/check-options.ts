import { LockConfigurationError } from '../core/errors.js';
import { shown } from '../core/shown.js';

/** Throws `LockConfigurationError` where what was passed is no object, or has an option that is unknown. */
export function checkOptions(site: string, options: object, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null) {
    throw new LockConfigurationError(`${site}: its options are ${shown(options)}. Pass an object with ${known.join(', ')}, or nothing.`);
  }
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new LockConfigurationError(`${site}: there is no option ${shown(unknown)}. The options are: ${known.join(', ')}.`);
  }
}

/** Throws `LockConfigurationError` where an option is given that has not these methods. */
export function checkMethods(option: string, given: unknown, methods: readonly string[], cure: string): void {
  const has = (method: string): boolean => typeof (given as { readonly [name: string]: unknown })[method] === 'function';
  if (given !== undefined && (typeof given !== 'object' || given === null || !methods.every(has))) {
    throw new LockConfigurationError(`${option} is ${shown(given)}. ${cure}`);
  }
}
