import { LockConfigurationError } from './errors.js';
import { checkKey, formatValue } from './lock-key.js';

/** Where a placeholder finds its value: an argument, and a path into it. */
interface Placeholder {
  readonly text: string;
  readonly index: number;
  readonly path: readonly string[];
}

/** Turns the arguments of a call into the key to lock; throws `LockKeyError`. */
export type KeyOfArguments = (args: readonly unknown[]) => string;

/** What the parameters of a method are called. */
export interface ParameterNames {
  /** By `@LockKey`, at its position. */
  readonly given: ReadonlyMap<number, string>;
  /** As the source of the method has them. */
  readonly source: readonly string[];
}

/**
 * Compiles `'balance:<customerId>'`, `'<dto.accountId>'`, `'<0>'` or `'<1.id>'` for a method with these parameters. Throws `LockConfigurationError` for bad brackets, empty placeholders and unknown names; `place` is the
 * `Class.method` that its messages name.
 */
export function compileKeyTemplate(template: string, names: ParameterNames, place: string): KeyOfArguments {
  const pieces = split(template, [...names.given.values(), ...names.source].filter(Boolean), place);
  const literals = pieces.filter((_, index) => index % 2 === 0);
  const placeholders = pieces.filter((_, index) => index % 2 === 1).map((text) => resolve(text, names, template, place));
  const inKey = `${place}: the key '${template}'`;
  return (args) => {
    let key = literals[0] as string;
    for (let at = 0; at < placeholders.length; at++) {
      const placeholder = placeholders[at] as Placeholder;
      key += formatValue(valueOf(placeholder, args), `<${placeholder.text}>`, inKey) + literals[at + 1];
    }
    return checkKey(key, inKey);
  };
}

/** Literals and placeholders in turn, starting and ending with a literal. */
function split(template: string, names: readonly string[], place: string): string[] {
  if (template === '') {
    throw new LockConfigurationError(`${place}: the key template is empty. Name what is protected, such as 'balance:<customerId>'.`);
  }
  const foreign = /\$\{.*?\}/.exec(template) ?? names.map((name) => `{${name}}`).filter((text) => template.includes(text));
  if (foreign[0] !== undefined) {
    throw new LockConfigurationError(
      `${place}: the key template '${template}' has ${foreign[0]}, which is no placeholder: every call would lock the same key. Write it as <name>.`,
    );
  }
  const pieces: string[] = [''];
  for (const character of template) {
    const inside = pieces.length % 2 === 0;
    if ((character === '<' && inside) || (character === '>' && !inside)) {
      throw badBrackets(template, place);
    }
    if (character === '<' || character === '>') {
      pieces.push('');
    } else {
      pieces[pieces.length - 1] += character;
    }
  }
  if (pieces.length % 2 === 0) {
    throw badBrackets(template, place);
  }
  return pieces;
}

function badBrackets(template: string, place: string): LockConfigurationError {
  return new LockConfigurationError(
    `${place}: the key template '${template}' has a '<' or '>' without its pair. ` +
      'Write a placeholder as <name>, <name.path> or <0>; for a key that holds these characters use a function.',
  );
}

function resolve(text: string, names: ParameterNames, template: string, place: string): Placeholder {
  const [head = '', ...path] = text.split('.');
  const inTemplate = `${place}: the key template '${template}'`;
  if (head === '' || path.includes('')) {
    throw new LockConfigurationError(
      `${inTemplate} has an empty placeholder <${text}>. Write the name of a parameter, as in <customerId>.`,
    );
  }
  if (/^\d+$/.test(head)) {
    return { text, index: Number(head), path };
  }
  for (const [given, name] of names.given) {
    if (name === head) {
      return { text, index: given, path };
    }
  }
  const index = names.source.indexOf(head);
  if (index >= 0 && head.length > 1) {
    return { text, index, path };
  }
  const cure = 'Use @LockKey() on the parameter, a position such as <0>, or a function of the arguments.';
  if (index >= 0) {
    throw new LockConfigurationError(`${inTemplate} names <${text}>, but one-letter parameter names change when code is minified. ${cure}`);
  }
  const known = [...names.given.values(), ...names.source].filter((name) => name !== '').join(', ');
  throw new LockConfigurationError(
    known === ''
      ? `${inTemplate} names <${text}>, but the parameter names of this method are hidden: it has none, or another decorator wrapped it. ${cure}`
      : `${inTemplate} names <${text}>, but the parameters of this method are: ${known}. Correct the name. ` +
          `Where the code is minified or another decorator wrapped the method: ${cure}`,
  );
}

function valueOf(placeholder: Placeholder, args: readonly unknown[]): unknown {
  let value = args[placeholder.index];
  for (const name of placeholder.path) {
    if (value === undefined || value === null) {
      return value;
    }
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return value;
}
