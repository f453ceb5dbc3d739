import { parse } from 'acorn';

/**
 * The parser. The build replaces this file (`scripts/build.mjs`), so that an application which names no parameter does
 * not load acorn.
 */
export function parser(): typeof parse {
  return parse;
}
