import { printable, printableJson } from '../../lib/core/words/shown.js';

/** Prints lines, as they are. */
export function print(...lines: readonly string[]): void {
  process.stdout.write(lines.map((line) => `${line}\n`).join(''));
}

/** Prints a value as one line of JSON, in which a terminal obeys nothing. `Infinity` becomes null. */
export function printJson(value: unknown): void {
  print(printableJson(JSON.stringify(value)));
}

/** Tells the operator what is not part of the result. */
export function tell(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

/** Prints a sentence about a result, where there is one: beside JSON it is no part of the output. */
export function remark(text: string | undefined, { json }: { readonly json: boolean }): void {
  if (text !== undefined && text !== '') {
    (json ? tell : (shown: string) => print(printable(shown)))(text);
  }
}

/** How many columns there are; `Infinity` where the output is no terminal. */
export function columns(): number {
  return process.stdout.columns || Number(process.env['COLUMNS']) || Infinity;
}
