import { LockConfigurationError } from '../../core/words/errors.js';
import { checkKey, formatValue, separates } from '../../core/words/lock-key.js';
import { knownNames, placeholderOf, refuseDefault, valueOf, type Parameters, type Placeholder } from './placeholder.js';

/** `${id}`, `{{id}}`, `{id.of.it}`, `[id]` and `{0}`; with the name, where the text may also mean itself. */
const IN_BRACES = /\$\{.*?\}|\{\{.*?\}\}|[{[]\s*([\p{ID_Continue}$]+)\s*(?:\.[^{}[\]]*)?[}\]]/gu;
/** `:id`, `$id`, `#id` and `:$id`, with the character before it where that belongs to a word, a placeholder or `::`. */
const AFTER_SIGN = /([\p{ID_Continue}>:]?)(:\$?|[$#])([\p{ID_Start}_][\p{ID_Continue}$]*)/gu;

/** Turns the arguments of a call into the key to lock; throws `LockKeyError`. */
export type KeyOfArguments = (args: readonly unknown[]) => string;

/**
 * Compiles `'balance:<customerId>'`, `'<dto.accountId>'`, `'<0>'` or `'<1.id>'` for a method with these parameters.
 * Throws `LockConfigurationError` for bad brackets; for placeholders that are empty, of another syntax, or without a
 * `:` between them; and for parameters that do not exist or are not certain. `site` is the `Class.method` that its
 * messages name.
 */
export function compileKeyTemplate(template: string, parameters: Parameters, site: string): KeyOfArguments {
  const pieces = split(template, site);
  refuseOtherSyntax(template, pieces, parameters, site);
  const literals = pieces.filter((_, index) => index % 2 === 0);
  refuseUnseparated(literals, template, site);
  const inTemplate = `${site}: the key template '${template}'`;
  const inKey = `${site}: the key '${template}'`;
  const placeholders = pieces.filter((_, index) => index % 2 === 1).map((text) => placeholderOf(text, parameters, inTemplate));
  return (args) => {
    let key = literals[0] as string;
    for (let at = 0; at < placeholders.length; at++) {
      const placeholder = placeholders[at] as Placeholder;
      const { index, path, shown } = placeholder;
      const value = path.length === 0 ? args[index] : valueOf(placeholder, args);
      if (value === undefined) {
        refuseDefault(placeholder, parameters, inKey);
      }
      key += formatValue(value, shown, inKey) + literals[at + 1];
    }
    return checkKey(key, inKey);
  };
}

/** Literals and placeholders in turn, starting and ending with a literal. */
function split(template: string, site: string): string[] {
  if (template.trim() === '') {
    throw new LockConfigurationError(`${site}: the key template is empty. Name what is protected, such as 'balance:<customerId>'.`);
  }
  const pieces: string[] = [''];
  for (const character of template) {
    const inside = pieces.length % 2 === 0;
    if ((character === '<' && inside) || (character === '>' && !inside)) {
      throw badBrackets(template, site);
    }
    if (character === '<' || character === '>') {
      pieces.push('');
    } else {
      pieces[pieces.length - 1] += character;
    }
  }
  if (pieces.length % 2 === 0) {
    throw badBrackets(template, site);
  }
  return pieces;
}

/** Different arguments would share a key. */
function refuseUnseparated(literals: readonly string[], template: string, site: string): void {
  if (literals.slice(1, -1).some((literal) => !separates(literal))) {
    throw new LockConfigurationError(
      `${site}: nothing in the key template '${template}' shows where one value ends and the next begins, so that different arguments could ` +
        "share a key. Write a ':' between placeholders, as in 'order:<shop>:<id>'.",
    );
  }
}

/** Placeholders of another syntax would be the same text in every key. */
function refuseOtherSyntax(template: string, pieces: readonly string[], parameters: Parameters, site: string): void {
  const hasPlaceholder = pieces.length > 1;
  const used = new Set(pieces.map((text, index) => (index % 2 === 1 ? text.split('.')[0] : undefined)));
  // A bracket stands for each placeholder.
  const literal = pieces.map((text, index) => (index % 2 === 1 ? '>' : text)).join('');
  // Asked of few templates: to know the names costs a parser.
  const isName = (text: string): boolean => !used.has(text) && knownNames(parameters).some((name) => bare(name) === bare(text));
  const [braces] =
    [...literal.matchAll(IN_BRACES)].find(([text, name]) => name === undefined || isName(name) || /^\{\s*\d+\s*[.}]/.test(text)) ?? [];
  // In `user:<id>:email` the last word is only by chance the name of a parameter.
  const [, , sign, named] =
    [...literal.matchAll(AFTER_SIGN)].find(([, word, , name = '']) => isName(name) && !(word && hasPlaceholder)) ?? [];
  const found = braces ?? (named && `${sign}${named}`);
  if (found !== undefined) {
    throw new LockConfigurationError(
      `${site}: the key template '${template}' has ${found}, which is no placeholder: ` +
        `${hasPlaceholder ? 'it would be the same text in every key' : 'every call would lock the same key'}. ` +
        "Write it as <name>. Where that very text is meant, use a function: key: () => '…'.",
    );
  }
}

/** The name without the word that may stand before it. */
function bare(name: string): string {
  return name.replace(/^(?:\.\.\.)?\$?/, '');
}

function badBrackets(template: string, site: string): LockConfigurationError {
  return new LockConfigurationError(
    `${site}: the key template '${template}' has a '<' or '>' without its pair. ` +
      'Write a placeholder as <name>, <name.path> or <0>; for a key that holds these characters use a function.',
  );
}
