import { LockConfigurationError, LockKeyError } from '../../core/words/errors.js';
import type { ParameterName, ParameterNames } from './parameter-names.js';

/** The names that a template may use. */
export interface Parameters {
  /** By `@LockKey`, at its position. */
  readonly given: ReadonlyMap<number, string>;
  /** The names as the source of the method has them; read when they are asked for. */
  readonly source: ParameterNames;
}

/** Where a placeholder finds its value: an argument, and a path into it. */
export interface Placeholder {
  /** The placeholder itself, for messages. */
  readonly shown: string;
  readonly index: number;
  readonly path: readonly string[];
}

const CURE = 'Use @LockKey() on the parameter, a position such as <0>, or a function of the arguments.';

/** The placeholder `<text>`. Throws `LockConfigurationError` where its name is empty, unknown or not certain. */
export function placeholderOf(text: string, parameters: Parameters, inTemplate: string): Placeholder {
  const [head = '', ...path] = text.split('.');
  const shown = `<${text}>`;
  if (head === '' || path.includes('')) {
    throw new LockConfigurationError(`${inTemplate} has an empty placeholder ${shown}. Write the name of a parameter, as in <customerId>.`);
  }
  const names = `${inTemplate} names ${shown}`;
  if (/^\d+$/.test(head)) {
    const { count } = parameters.source;
    if (Number(head) >= count) {
      throw new LockConfigurationError(`${names}, but the method has ${count} parameters, and positions start at 0. Correct the position.`);
    }
    return { shown, index: Number(head), path };
  }
  for (const [index, name] of parameters.given) {
    if (name === head) {
      return { shown, index, path };
    }
  }
  const bound = parameters.source.bound.find(({ name }) => name === head);
  if (bound === undefined) {
    throw unknown(names, parameters);
  }
  refuseUncertain(names, bound, parameters.source);
  return { shown, index: bound.index, path: [...bound.path, ...path] };
}

/** All that a template may name, and in a rest element `...name`. */
export function knownNames({ given, source }: Parameters): string[] {
  const bound = source.bound.map(({ name, hiddenBy }) => (hiddenBy === 'a rest element' ? `...${name}` : name));
  return [...given.values(), ...bound];
}

export function valueOf(placeholder: Placeholder, args: readonly unknown[]): unknown {
  let value = args[placeholder.index];
  for (const name of placeholder.path) {
    if (value === undefined || value === null) {
      return value;
    }
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return value;
}

/** Throws `LockKeyError` for a missing value in whose place the method has a default. */
export function refuseDefault({ shown, index, path }: Placeholder, { source }: Parameters, inKey: string): void {
  if (source.hasDefault(index, path)) {
    throw new LockKeyError(
      `${inKey}: ${shown} is undefined, and its default value is known only inside the method. ` +
        'Pass the value, or write the default into a function too: key: (id = …) => lockKey`order:${id}`.',
    );
  }
}

function unknown(names: string, parameters: Parameters): LockConfigurationError {
  const known = knownNames(parameters).join(', ');
  return new LockConfigurationError(
    known === ''
      ? `${names}, but the parameter names of this method are hidden: it has none, or another decorator wrapped it. ${CURE}`
      : `${names}, but the parameters of this method are: ${known}. Correct the name. ` +
          `Where the code is minified or another decorator wrapped the method: ${CURE}`,
  );
}

/** Throws `LockConfigurationError` for a name that may not be the author's, or whose value only the method knows. */
function refuseUncertain(names: string, bound: ParameterName, source: ParameterNames): void {
  const { name, index, path, hiddenBy } = bound;
  const doubt = source.doubt(bound);
  if (doubt !== undefined) {
    const cure =
      path.length === 0
        ? `Put @LockKey('${name}') before the parameter, or write its position, such as <0> for the first one`
        : `Write the position of the parameter and the path into it, such as <0.${path.join('.')}>`;
    throw new LockConfigurationError(`${names}. ${cure}: from the code it is not certain, since ${doubt}.`);
  }
  if (hiddenBy !== undefined) {
    throw new LockConfigurationError(
      `${names}, which ${hiddenBy} binds: its value is known only inside the method. Write where it is in the arguments, such as ` +
        `<${[index, ...path].join('.')}>, or use a function of the arguments: key: (…) => lockKey\`order:\${${name}}\`.`,
    );
  }
}
