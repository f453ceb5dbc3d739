import { parse } from 'acorn';

/** The parser. The build replaces this file, so that an application which names no parameter does not load acorn: `scripts/build.mjs`. */
export function parser(): typeof parse {
  return parse;
}
