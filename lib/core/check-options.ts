import { LockConfigurationError } from './errors.js';
import { nearest } from './nearest.js';
import { shown } from './shown.js';

/** Throws `LockConfigurationError` where options are no object, or have one that is unknown. */
export function checkOptions(site: string, options: unknown, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null) {
    throw new LockConfigurationError(`${site}: its options are ${shown(options)}. Pass an object with ${known.join(', ')}, or nothing.`);
  }
  refuseUnknown(site, options, known);
}

/** Throws `LockConfigurationError` where options have one that is unknown. */
export function refuseUnknown(site: string, options: object, known: readonly string[]): void {
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    const meant = nearest(unknown, known);
    throw new LockConfigurationError(
      `${site}: there is no option ${shown(unknown)}. ${meant === undefined ? '' : `Did you mean '${meant}'? `}The options are: ${known.join(', ')}.`,
    );
  }
}

/** Throws `LockConfigurationError` where an option is given that has not these methods. */
export function checkMethods(option: string, given: unknown, methods: readonly string[], cure: string): void {
  const has = (method: string): boolean => typeof (given as { readonly [name: string]: unknown })[method] === 'function';
  if (given !== undefined && (typeof given !== 'object' || given === null || !methods.every(has))) {
    throw new LockConfigurationError(`${option} is ${shown(given)}. ${cure}`);
  }
}
