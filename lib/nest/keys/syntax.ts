import type { AnyNode, Expression, Function as FunctionNode, Node, Pattern } from 'acorn';
import { parser } from './acorn.js';
import { boundNames } from './bound-names.js';

/** The source text of a function or class. */
export function sourceOf(value: Function): string {
  return Function.prototype.toString.call(value);
}

/**
 * A function that stands for itself; undefined where the source is hidden, cannot be parsed, or is the source of a
 * method.
 */
export function parseFunction(source: string): FunctionNode | undefined {
  const expression = parseExpression(source);
  return expression && isFunction(expression) ? expression : undefined;
}

/** A function that was written as a method of a class or object. */
export function parseMethod(source: string): FunctionNode | undefined {
  const wrapped = parseExpression(`class { ${source}\n}`);
  const [method, ...others] = wrapped?.type === 'ClassExpression' ? wrapped.body.body : [];
  return method?.type === 'MethodDefinition' && others.length === 0 ? method.value : undefined;
}

/** A class or function; undefined where the source is hidden or cannot be parsed. */
export function parseExpression(source: string): Expression | undefined {
  const parse = parser();
  try {
    // A class may name private fields of the class around it, which is not in its text.
    const { body } = parse(`(${source}\n)`, { ecmaVersion: 'latest', sourceType: 'module', checkPrivateFields: false });
    return body.length === 1 && body[0]?.type === 'ExpressionStatement' ? body[0].expression : undefined;
  } catch {
    return undefined;
  }
}

/** The code itself and all code inside of it. */
export function partsOf(code: Node): AnyNode[] {
  const children = Object.values(code).flat() as unknown[];
  return [code as AnyNode, ...children.filter(isNode).flatMap(partsOf)];
}

/** The names of all parameters and variables in the code, but not the names of functions and classes. */
export function variablesOf(code: Node): string[] {
  return partsOf(code).flatMap((part) => {
    if (isFunction(part)) {
      return part.params.flatMap(namesIn);
    }
    return part.type === 'VariableDeclarator' ? namesIn(part.id) : [];
  });
}

function namesIn(pattern: Pattern): string[] {
  return boundNames(pattern).map(({ name }) => name);
}

function isFunction(code: Node): code is FunctionNode {
  return code.type === 'FunctionExpression' || code.type === 'ArrowFunctionExpression' || code.type === 'FunctionDeclaration';
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Partial<Node>).type === 'string';
}
