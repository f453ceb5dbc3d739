import { wrongOption } from './check-options.js';
import { LockKeyError } from './errors.js';
import { kindOf } from './shown.js';

/** The longest key, in bytes of UTF-8. */
const LONGEST_KEY = 1024;

const SPACE = 0x20;

// eslint-disable-next-line no-control-regex -- control characters are what it finds
const SPECIAL = /[%:{}<\u0000-\u001f\u007f]/g;

/**
 * The characters that no escaped value contains, so that each of them certainly ends a value. Not `%`, which begins an
 * escape.
 */
// eslint-disable-next-line no-control-regex -- control characters are what it finds
const SEPARATOR = /[:{}\u0000-\u001f\u007f]/;

const OBJECT_CURE = 'Make sure to name its id: key: (id) => lockKey`order:${id.…}`.';

/** The placeholder of a parameter in the key template of a decorator. */
const PLACEHOLDER = /<[\p{ID_Continue}$]+(?:\.[\p{ID_Continue}$]+)*>/u;

/** The key itself if a store can keep it; throws `LockKeyError` for an empty, over-long or malformed one. */
export function checkKey(key: unknown, site: string): string {
  if (typeof key !== 'string') {
    throw new LockKeyError(`${site}: a key is ${kindOf(key)}, not a string. Make sure that the key is text.`);
  }
  if (key === '' || (key.charCodeAt(0) <= SPACE && key.trim() === '')) {
    throw new LockKeyError(
      `${site}: the key is empty${key === '' ? '' : ' but for white space'}. Name what is protected, such as 'balance:42'.`,
    );
  }
  // A UTF-16 unit takes at most three bytes, so short keys need no count.
  if (key.length * 3 > LONGEST_KEY && Buffer.byteLength(key) > LONGEST_KEY) {
    throw new LockKeyError(
      `${site}: the key "${key.slice(0, 40)}…" has ${Buffer.byteLength(key)} bytes; at most ${LONGEST_KEY} are allowed. ` +
        'Use an identifier or a hash of the long value.',
      key.slice(0, 40),
    );
  }
  if (!key.isWellFormed()) {
    throw new LockKeyError(
      `${site}: the key ${JSON.stringify(key)} holds half a surrogate pair, which UTF-8 cannot store. Make sure that the text is whole.`,
      key,
    );
  }
  return key;
}

/**
 * The keys that a caller named, checked and sorted by code units, each once: two calls that want the same keys take
 * them in the same order. Throws `LockKeyError` as `checkKey` does, also where there is none.
 */
export function checkKeys(key: string | readonly string[], site: string): readonly string[] {
  if (typeof key === 'string') {
    return [checkKey(key, site)];
  }
  if (!Array.isArray(key) || key.length === 0) {
    throw new LockKeyError(`${site}: the key is ${kindOf(key)}. Make sure that it is a string, or a list of at least one.`);
  }
  return [...new Set((key as readonly string[]).map((one) => checkKey(one, site)))].toSorted();
}

/** The keys themselves where it is one; throws `LockKeyError` for several, which a semaphore cannot have. */
export function checkOneKey(keys: readonly string[], site: string): readonly string[] {
  if (keys.length > 1) {
    throw new LockKeyError(
      `${site}: a semaphore has one key, and got ${keys.length}. Take the permits one inside the other, in one order.`,
    );
  }
  return keys;
}

/**
 * The text of a value inside a key; throws `LockKeyError` for a value whose text would make two different things share
 * one key.
 * An object is the text or number that its `toJSON()` gives.
 * `%`, `:`, `{`, `}`, `<` and control characters are percent-escaped, so that `('a:b', 'c')` and `('a', 'b:c')` stay
 * apart.
 */
export function formatValue(value: unknown, placeholder: string, site: string): string {
  switch (typeof value) {
    case 'string':
      if (value !== '') {
        return value.replace(SPECIAL, percentEscape);
      }
      break;
    case 'number':
      // The remainder of an integer is 0, and the remainder of Infinity is NaN.
      if (Number.isSafeInteger(value) || Math.abs(value % 1) > 0) {
        return String(value);
      }
      break;
    case 'bigint':
    case 'boolean':
      return String(value);
    case 'object': {
      const json = jsonOf(value, placeholder, site);
      if (json === null || typeof json === 'string' || typeof json === 'number') {
        return formatValue(json, `toJSON() of ${placeholder}`, site);
      }
    }
  }
  throw new LockKeyError(`${site}: ${placeholder} is ${kindOf(value)}, ${refusalOf(value)}`);
}

/** The answer of a value's `toJSON()`; undefined where it has none. */
function jsonOf(value: unknown, placeholder: string, site: string): unknown {
  try {
    return (value as { toJSON?(): unknown } | null)?.toJSON?.();
  } catch (cause) {
    throw new LockKeyError(`${site}: toJSON() of ${placeholder} threw an error. ${OBJECT_CURE}`, '', { cause });
  }
}

/** Why a value cannot be part of a key, and how to write the key instead. */
function refusalOf(value: unknown): string {
  if (Number.isInteger(value)) {
    return 'but beyond 2^53 several ids are one number. Pass it as text or bigint.';
  }
  const cure = typeof value === 'object' && value ? OBJECT_CURE : 'Make sure that it is text, a finite number, a bigint or a boolean.';
  return `which cannot be part of a key. ${cure}`;
}

/**
 * The keys that a caller named by hand: as `checkKeys` returns them. Throws `LockKeyError` also for a key with a
 * placeholder such as `<name>`: in a decorator it would be a template, here it would be one key for all callers. Keys
 * made by `lockKey` have no `<`.
 */
export function checkLiteralKeys(key: string | readonly string[], site: string): readonly string[] {
  const keys = checkKeys(key, site);
  for (const one of keys) {
    refusePlaceholder(one, site);
  }
  return keys;
}

/** The key that a caller named by hand; throws `LockKeyError` as `checkLiteralKeys` does. */
export function checkLiteralKey(key: unknown, site: string): string {
  const checked = checkKey(key, site);
  refusePlaceholder(checked, site);
  return checked;
}

/** Throws `LockKeyError` for a literal text that has `<name>`, as the template of a decorator. */
function refusePlaceholder(text: string, site: string): void {
  const [found] = (text.includes('<') && PLACEHOLDER.exec(text)) || [];
  if (found !== undefined) {
    throw new LockKeyError(
      `${site}: the key "${text}" has ${found}, which is a placeholder only in the template of @DistributedLock: every call would lock the ` +
        'same key. Write lockKey`order:${id}`; where that very text is meant, make it a value of lockKey too.',
      text,
    );
  }
}

/**
 * Whether a text between two values shows where the first value ends: without it, `('ab', 'c')` and `('a', 'bc')` would
 * share a key.
 */
export function separates(text: string): boolean {
  return SEPARATOR.test(text);
}

/** A percent-escape per character, as in URLs; all that is escaped here is ASCII. */
export function percentEscape(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}

/**
 * A key with the checks and escapes of a template, for use with the service: a tag for template literals.
 * A value is a text, a number, a bigint, a boolean, or an object such as a `Date`, whose `toJSON()` gives one of them.
 * Throws `LockKeyError` where a value is anything else, `''`, `NaN` or an integer beyond 2^53, where no `:` or brace is
 * between two values, and where it is no tag.
 */
export function lockKey(strings: TemplateStringsArray, ...values: readonly unknown[]): string {
  if (!Array.isArray((strings as TemplateStringsArray | undefined)?.raw)) {
    throw new LockKeyError(
      `lockKey() was called with ${kindOf(strings)}. Write it as a tag, without brackets, so that it can escape values: lockKey\`order:\${id}\`.`,
    );
  }
  const site = 'lockKey`' + strings.join('${…}') + '`';
  let key = literal(strings[0], site);
  values.forEach((value, index) => {
    if (index > 0 && !separates(strings[index] ?? '')) {
      throw new LockKeyError(
        `${site}: nothing shows where value ${index} ends and value ${index + 1} begins, so that different values could share a key. ` +
          "Write a ':' between them.",
      );
    }
    key += formatValue(value, `value ${index + 1}`, site) + literal(strings[index + 1], site);
  });
  return checkKey(key, site);
}

/** A text between values, without `<`, so that nothing takes the key for a template. */
function literal(text = '', site: string): string {
  refusePlaceholder(text, site);
  return text.replaceAll('<', percentEscape);
}

/**
 * Throws `LockConfigurationError` for a prefix that could not be told from the key after it, or that would move Redis
 * keys to other slots.
 */
export function checkPrefix(prefix: unknown): string {
  if (typeof prefix !== 'string' || !/^[^{}%\s]{1,200}$/.test(prefix)) {
    throw wrongOption('LockModule: prefix', prefix, "Use 1 to 200 characters without braces, '%' and white space, such as 'lock'.");
  }
  return prefix;
}
