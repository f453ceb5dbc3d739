import type { Shares } from './call-options.js';

/** A value for a message: never the source of a function, and nothing long. */
export function shown(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return value.length > 100 ? `a string of ${value.length} characters` : `'${value}'`;
    case 'function':
      return `${isClass(value) ? 'the class' : 'the function'} ${value.name === '' ? 'without a name' : value.name}`;
    case 'object':
      return value === null ? 'null' : Array.isArray(value) ? 'an array' : `an object of class ${value.constructor?.name ?? 'null'}`;
    default:
      return String(value);
  }
}

const KINDS: Readonly<Record<string, string | undefined>> = { string: 'a string', object: 'an object', function: 'a function' };

/** A value for a message, without its content where that may be large or private. */
export function kindOf(value: unknown): string {
  if (Array.isArray(value)) {
    return value.length === 0 ? 'an empty list' : 'an array';
  }
  if (value instanceof Promise) {
    return 'a promise';
  }
  return value === '' ? 'an empty string' : (value !== null && KINDS[typeof value]) || String(value);
}

/** A value for a message, without a text, which may be an address with its password. */
export function shownWithoutText(value: unknown): string {
  return typeof value === 'string' ? kindOf(value) : shown(value);
}

/** Keys, as messages name them. */
export function quoted(keys: readonly string[]): string {
  return keys.map((key) => `"${key}"`).join(', ');
}

/** Whether a function is a class, which cannot be called. */
export function isClass(value: Function): boolean {
  return /^class\b/.test(Function.prototype.toString.call(value));
}

/**
 * Characters that a terminal or page obeys instead of showing, or that nobody sees: control characters, line ends,
 * characters that turn the direction of text, characters without a width, and blanks that look like a space.
 */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;

/** The text for a message, a log or a page, with invisible characters as escapes such as `\u001b`. */
export function printable(text: string): string {
  return text.replace(UNSEEN, escaped);
}

/** Like `printable`, for the text of a JSON document: there, an escape has four digits. */
export function printableJson(json: string): string {
  return json.replace(UNSEEN, (character) => character.split('').map(escaped).join(''));
}

function escaped(character: string): string {
  const code = (character.codePointAt(0) as number).toString(16);
  return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`;
}

/** How a key is held: `write`, `read by 3` or `4 of 5 permits`. */
export function sharing(shares: Shares | undefined, holds: number): string {
  return typeof shares === 'number' ? `${holds} of ${shares} permits` : shares === undefined ? 'write' : `${shares} by ${holds}`;
}

/** With whom several holds share their key: the smallest count of permits. */
export function fewest(holds: readonly { readonly shares?: Shares | undefined }[]): Shares | undefined {
  const shares = holds[0]?.shares;
  return typeof shares === 'number' ? Math.min(...holds.map((hold) => Number(hold.shares))) : shares;
}
