import type { Expression, Function as FunctionNode, Node } from 'acorn';
import { boundNames, isShorthand, type BoundName } from './bound-names.js';
import { parseExpression, parseFunction, parseMethod, partsOf, sourceOf, variablesOf } from './syntax.js';

/** Minifiers give names of so many letters only where 220,000 shorter ones are taken. */
const NEVER_MINIFIED = 4;

/** How many names of one letter there are: `a` to `z`, `A` to `Z`, `$` and `_`. */
const ONE_LETTER_NAMES = 54;

/** A name that a parameter binds: its own, or one of its pattern. */
export interface ParameterName extends BoundName {
  /** The position of the parameter. */
  readonly index: number;
}

/**
 * The names that the parameters of a method bind, read from its source. A name is trusted only where it is certain that
 * the author wrote it:
 *
 * | name | trusted |
 * |---|---|
 * | one letter | never |
 * | two or three letters | where no other name for a template is short, or a variable shows that nothing was minified |
 * | four letters and more | always |
 * | `id2` beside `id22` | never: bundlers rename `id` to `id2` and `id2` to `id22` |
 *
 * Another name does not count as short where it is a shorthand, `{ to }`: minifiers would have written `{ to: a }`. But
 * `{ id }` beside a short `e` may have been written `{ id: customer }`, and `e` may have been `id`.
 *
 * A variable of four letters shows for its class that nothing was minified; a variable of three letters shows it for
 * its method, where the class has its long name in its text. Minifiers that keep the names of classes give the shortest
 * name that the method does not use yet. Minifiers that number the variables of a whole bundle shorten the names of its
 * classes too.
 */
export class ParameterNames {
  /** In the order of the source; empty where that is hidden. */
  readonly bound: readonly ParameterName[];
  /** How many arguments can have a meaning; `Infinity` where it is not known. */
  readonly count: number;
  readonly #syntax: FunctionNode | undefined;
  readonly #source: string;
  readonly #owner: Function | undefined;
  /**
   * Whether no parameter was dropped, which minifiers may do with the last parameters of a function, but not of a
   * method.
   */
  readonly #isComplete: boolean;

  /** `owner` is the class, and `declared` how many parameters TypeScript saw, where it says so. */
  constructor(method: Function, owner?: Function, declared?: number) {
    this.#source = sourceOf(method);
    this.#owner = owner;
    const written = parseFunction(this.#source);
    this.#syntax = written ?? parseMethod(this.#source);
    const { params = [] } = this.#syntax ?? {};
    this.bound = params.flatMap((parameter, index) => boundNames(parameter).map((one) => Object.assign(one, { index })));
    this.count = this.#syntax && !takesMore(this.#syntax) ? Math.max(params.length, declared ?? 0) : Infinity;
    this.#isComplete = declared === undefined ? !written : declared === params.length;
  }

  /** Whether the method may have a default value where an argument has nothing at the path. */
  hasDefault(index: number, path: readonly string[]): boolean {
    const isOnWay = (one: ParameterName): boolean => one.path.every((name, at) => (path[at] ?? name) === name);
    return this.bound.some((one) => one.index === index && one.hasDefault && isOnWay(one));
  }

  /** Why a name may not be the author's; undefined where it is. */
  doubt(bound: ParameterName): string | undefined {
    const { name } = bound;
    const others = this.bound.filter((other) => other !== bound);
    const pushedAside = /\d$/.test(name)
      ? others.find((other) => other.name.startsWith(name) && /^\d+$/.test(other.name.slice(name.length)))
      : undefined;
    if (pushedAside !== undefined) {
      return `beside ${pushedAside.name} it may be the name that a bundler gave to another parameter`;
    }
    if (name.length >= NEVER_MINIFIED) {
      return undefined;
    }
    // The parameter that the template means is still here, under another short name, or it is this parameter.
    const isOnlyShort = this.#isComplete && !others.some(isShort);
    return name.length > 1 && (isOnlyShort || this.#isUnminified())
      ? undefined
      : 'so short a name may be one that a minifier gave to another parameter';
  }

  /** Minifiers shorten all variables of a class, so a longer one shows that there was none. */
  #isUnminified(): boolean {
    const owner = this.#owner ? sourceOf(this.#owner) : '';
    // A method that comes from elsewhere may have been built otherwise than its class.
    const code = owner.includes(this.#source) ? parseExpression(owner) : this.#syntax;
    if (code === undefined || usesEval(code)) {
      return false;
    }
    return variablesOf(code).some((name) => /^[^_$].{3}/.test(name)) || (hasLongName(code) && this.#hasLongerThanNeeded());
  }

  /** Whether the method has a variable of three letters, though it uses too few names to need one of two. */
  #hasLongerThanNeeded(): boolean {
    const method = this.#syntax as FunctionNode;
    const used = new Set(partsOf(method).map((part) => (part.type === 'Identifier' ? part.name : '')));
    return used.size < ONE_LETTER_NAMES && variablesOf(method).some((name) => /^[^_$].{2}/.test(name));
  }
}

/** Whether a name may be a minifier's, in the place of one that a template can mean. */
function isShort(bound: ParameterName): boolean {
  return bound.name.length < NEVER_MINIFIED && bound.hiddenBy === undefined && !isShorthand(bound);
}

function takesMore(method: FunctionNode): boolean {
  const hasRest = method.params.some(({ type }) => type === 'RestElement');
  return hasRest || partsOf(method).some((part) => part.type === 'Identifier' && part.name === 'arguments');
}

/** Whether the text of a class has a name that no minifier would give it. */
function hasLongName(code: Expression | FunctionNode): boolean {
  return code.type === 'ClassExpression' && (code.id?.name.length ?? 0) >= NEVER_MINIFIED;
}

/** Code that `eval` can see keeps its names, and the rest of the class does not. */
function usesEval(code: Node): boolean {
  return partsOf(code).some((part) => part.type === 'CallExpression' && part.callee.type === 'Identifier' && part.callee.name === 'eval');
}
