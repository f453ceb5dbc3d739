import type { Function as FunctionNode, Node, Pattern } from 'acorn';
import { parseExpression, parseFunction, parseMethod, partsOf, sourceOf, variablesOf } from './syntax.js';

/** Minifiers give names of so many letters only where 220,000 shorter ones are taken. */
const NEVER_MINIFIED = 4;

/**
 * The parameters of a method, read from its source. A name is trusted only where it is certain that it is the author's:
 *
 * | name | trusted |
 * |---|---|
 * | one letter | never |
 * | two or three letters | a longer variable of the class shows that nothing was minified, or no other has a short name |
 * | four letters and more | always |
 * | `id2` beside `id22` | never: bundlers rename `id` to `id2` and `id2` to `id22` |
 */
export class ParameterNames {
  /** By position: a destructured one is `''`, a rest one starts with `...`. Empty where the source is hidden. */
  readonly names: readonly string[];
  /** How many arguments can have a meaning; `Infinity` where it is not known. */
  readonly count: number;
  readonly #syntax: FunctionNode | undefined;
  readonly #source: string;
  readonly #owner: Function | undefined;
  /** Whether no parameter was dropped, which minifiers may do with the last ones of a function, but not of a method. */
  readonly #isComplete: boolean;

  /** `owner` is the class, and `declared` how many parameters TypeScript saw, where it says so. */
  constructor(method: Function, owner?: Function, declared?: number) {
    this.#source = sourceOf(method);
    this.#owner = owner;
    const written = parseFunction(this.#source);
    this.#syntax = written ?? parseMethod(this.#source);
    this.names = this.#syntax?.params.map(nameOf) ?? [];
    this.count = this.#syntax && !takesMore(this.#syntax) ? Math.max(this.names.length, declared ?? 0) : Infinity;
    this.#isComplete = declared === undefined ? !written : declared === this.names.length;
  }

  /** Why the name of a parameter may not be the author's; undefined where it is. */
  doubt(index: number): string | undefined {
    const name = this.names[index] as string;
    const others = this.names.filter((other, at) => at !== index && /^[^.]/.test(other));
    const pushedAside = /\d$/.test(name)
      ? others.find((other) => other.startsWith(name) && /^\d+$/.test(other.slice(name.length)))
      : undefined;
    if (pushedAside !== undefined) {
      return `beside ${pushedAside} it may be the name that a bundler gave to another parameter`;
    }
    if (name.length >= NEVER_MINIFIED) {
      return undefined;
    }
    // The parameter that the template means is still here, under another short name, or it is this one.
    const isOnlyShort = this.#isComplete && others.every((other) => other.length >= NEVER_MINIFIED);
    return name.length > 1 && (isOnlyShort || this.#isUnminified())
      ? undefined
      : 'in minified code so short a name may be that of another parameter';
  }

  /** Minifiers shorten all variables of a class, so a longer one shows that there was none. */
  #isUnminified(): boolean {
    const owner = this.#owner ? sourceOf(this.#owner) : '';
    // A method that comes from elsewhere may have been built otherwise than its class.
    const code = owner.includes(this.#source) ? parseExpression(owner) : this.#syntax;
    return code !== undefined && !usesEval(code) && variablesOf(code).some((name) => /^[^_$].{3}/.test(name));
  }
}

function nameOf(parameter: Pattern): string {
  switch (parameter.type) {
    case 'Identifier':
      return parameter.name;
    case 'AssignmentPattern':
      return nameOf(parameter.left);
    case 'RestElement':
      return `...${nameOf(parameter.argument)}`;
    default:
      return '';
  }
}

function takesMore(method: FunctionNode): boolean {
  const hasRest = method.params.some(({ type }) => type === 'RestElement');
  return hasRest || partsOf(method).some((part) => part.type === 'Identifier' && part.name === 'arguments');
}

/** Code that `eval` can see keeps its names, and the rest of the class does not. */
function usesEval(code: Node): boolean {
  return partsOf(code).some((part) => part.type === 'CallExpression' && part.callee.type === 'Identifier' && part.callee.name === 'eval');
}
