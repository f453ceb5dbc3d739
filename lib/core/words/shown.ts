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

/** Whether a function is a class, which cannot be called. */
export function isClass(value: Function): boolean {
  return /^class\b/.test(Function.prototype.toString.call(value));
}

/** What a terminal obeys instead of showing it: control characters, line ends, and what turns the direction of text. */
const CONTROL = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/** The text for a message or a log, with control characters as escapes such as `\u001b`. */
export function printable(text: string): string {
  return text.replace(CONTROL, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
