import { LockConfigurationError } from './errors.js';
import { describe } from './lock-key.js';
import { nearest } from './option-places.js';
import { placesOf, synonymOf } from './option-places.js';
import { shown } from './shown.js';

/** The names of all options of something; the compiler misses one that is not here. */
export type OptionNames<Options> = Readonly<Record<keyof Options, true>>;

/** Throws `LockConfigurationError` where options are no object, or have one that is unknown. */
export function checkOptions<Options extends object>(site: string, options: Options, known: OptionNames<Options>): void {
  if (typeof options !== 'object' || options === null) {
    // A text may be an address with its password.
    const given = typeof options === 'string' ? describe(options) : shown(options);
    throw new LockConfigurationError(
      `${site}: the options are ${given}. Pass an object with ${Object.keys(known).join(', ')}, or nothing.`,
    );
  }
  // Calls come here, so there is no list of names. What is inherited is read too, but for what others gave to all objects.
  for (const name in options) {
    if (known[name] !== true && !(name in Object.prototype)) {
      throw unknownOption(site, name, Object.keys(known));
    }
  }
}

/** The error of an option that is mistyped, belongs elsewhere or does not exist. */
function unknownOption(site: string, name: string, known: readonly string[]): LockConfigurationError {
  const places = placesOf(name);
  const synonym = synonymOf(name);
  const meant = synonym !== undefined && known.includes(synonym) ? synonym : nearest(name, known);
  const what =
    places === undefined
      ? `there is no option ${shown(name)}.${meant === undefined ? '' : ` Did you mean '${meant}'?`}`
      : `${shown(name)} is no option here, but one of ${places}.`;
  return new LockConfigurationError(`${site}: ${what} The options are: ${known.join(', ')}.`);
}

/** Throws `LockConfigurationError` for what is no function. */
export function checkFunction(site: string, given: unknown, cure: string): void {
  if (typeof given !== 'function') {
    throw new LockConfigurationError(`${site}: what was passed is ${describe(given)}, not a function. ${cure}`);
  }
}

/** Throws `LockConfigurationError` where an option is given that has not these methods. */
export function checkMethods(option: string, given: unknown, methods: readonly string[], cure: string): void {
  const has = (method: string): boolean => typeof (given as { readonly [name: string]: unknown })[method] === 'function';
  if (given !== undefined && (typeof given !== 'object' || given === null || !methods.every(has))) {
    throw new LockConfigurationError(`${option} is ${shown(given)}. ${cure}`);
  }
}
