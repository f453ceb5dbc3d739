const CLOSING: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };

/**
 * The parameter names of a function, read from its source; a destructured one is `''`, a rest one starts with `...`.
 * Empty where the source is hidden (native or bound functions).
 */
export function parameterNames(method: Function): string[] {
  const source = Function.prototype.toString.call(method);
  if (/\{\s*\[native code\]\s*\}\s*$/.test(source)) {
    return [];
  }
  return parameterList(source).map((parameter) => {
    const name = /^(?:\.\.\.)?[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*/u.exec(parameter);
    return name ? name[0] : '';
  });
}

/** The texts between the commas of the parameter list, without comments. */
function parameterList(source: string): string[] {
  const parameters: string[] = [];
  const open: string[] = [];
  let text = '';
  let inList = false;
  for (let at = 0; at < source.length; at++) {
    const skipped = endOfCommentOrText(source, at);
    if (skipped > at) {
      if (source[at] !== '/') {
        text += source.slice(at, skipped);
      }
      at = skipped - 1;
      continue;
    }
    const character = source[at] as string;
    if (!inList) {
      // A computed name, `['a(b)'](x) {}`, has brackets of its own before the list.
      if (character === '[') {
        open.push(']');
      } else if (character === open.at(-1)) {
        open.pop();
      } else if (character === '(' && open.length === 0) {
        inList = true;
        text = '';
      }
      continue;
    }
    if (open.length === 0 && (character === ',' || character === ')')) {
      if (text.trim() !== '') {
        parameters.push(text.trim());
      }
      if (character === ')') {
        break;
      }
      text = '';
      continue;
    }
    text += character;
    if (CLOSING[character]) {
      open.push(CLOSING[character]);
    } else if (character === open.at(-1)) {
      open.pop();
    }
  }
  return parameters;
}

/** Where a comment or a quoted text that starts at `at` ends; `at` where none starts. */
function endOfCommentOrText(source: string, at: number): number {
  const two = source.slice(at, at + 2);
  if (two === '//' || two === '/*') {
    const end = source.indexOf(two === '//' ? '\n' : '*/', at + 2);
    return end < 0 ? source.length : end + (two === '//' ? 1 : 2);
  }
  const quote = source[at] as string;
  if (!'\'"`'.includes(quote)) {
    return at;
  }
  let end = at + 1;
  while (end < source.length && source[end] !== quote) {
    end += source[end] === '\\' ? 2 : 1;
  }
  return end + 1;
}
