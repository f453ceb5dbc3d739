/** What a terminal obeys instead of showing it: control characters, line ends, and what turns the direction of text. */
const CONTROL = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/** The text for a message or a log, with control characters as escapes such as `\u001b`. */
export function printable(text: string): string {
  return text.replace(CONTROL, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
