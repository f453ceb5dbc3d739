import { LockConfigurationError } from '../../core/words/errors.js';

/** A method of a class that a decorator stands on. */
export interface DecoratedMethod {
  /** `Class.method`, for messages. */
  readonly site: string;
  readonly body: (this: unknown, ...args: unknown[]) => unknown;
}

/**
 * The method that a decorator is on; throws `LockConfigurationError` where this is no method of instances. `instead`
 * names the function that other code may use.
 */
export function decoratedMethod(
  decorator: string,
  target: unknown,
  name: string | symbol | undefined,
  descriptor: unknown,
  instead: string,
): DecoratedMethod {
  if (isContext(name)) {
    throw new LockConfigurationError(
      `${String(name.name ?? 'a class')}: ${decorator} was called as a standard decorator, and Nest needs the older ones. Set ` +
        '"experimentalDecorators": true and "emitDecoratorMetadata": true in the compilerOptions of tsconfig.json ' +
        '(with swc: legacyDecorator and decoratorMetadata in jsc.transform of .swcrc).',
    );
  }
  const owner = nameOf(target);
  const site = name === undefined ? owner : `${owner}.${String(name)}`;
  const body: unknown = (descriptor as PropertyDescriptor | undefined)?.value;
  const wrong = wrongPlace(target, name, descriptor);
  if (wrong !== undefined || typeof body !== 'function') {
    throw new LockConfigurationError(
      `${site}: ${decorator} ${wrong ?? 'does not work on what is no method'}. Make it an instance method of a provider or controller, or use ${instead}.`,
    );
  }
  refuseBeside(decorator, target as object, name as string | symbol, site);
  return { site, body: body as DecoratedMethod['body'] };
}

const BEFORE = Symbol('decorator of ours on a method');

/**
 * Throws `LockConfigurationError` for a leader that is locked as well, or leads twice: it has one lock while it leads.
 */
function refuseBeside(decorator: string, target: object, name: string | symbol, site: string): void {
  const before = Reflect.getOwnMetadata(BEFORE, target, name) as string | undefined;
  if (before !== undefined && [before, decorator].includes('@Leader()')) {
    throw new LockConfigurationError(
      `${site}: ${decorator} cannot stand beside ${before}. Leave one out: a leader has one lock, while it leads.`,
    );
  }
  Reflect.defineMetadata(BEFORE, decorator, target, name);
}

/**
 * Throws `LockConfigurationError` where a decorator got a key and its options as separate arguments, or was not called
 * itself.
 */
export function oneArgument(decorator: string, more: readonly unknown[], example: string): void {
  if (more.length === 0) {
    return;
  }
  const isBare = more.length === 2 || isContext(more[0]);
  throw new LockConfigurationError(
    isBare
      ? `${decorator} was written without its brackets. Write it as ${example}.`
      : `${decorator} takes one argument, and got ${more.length + 1}. Put the key among the options: ${example}.`,
  );
}

/** Gives the wrapper the name, length and metadata of the method, so that decorators work in any order. */
export function imitate(wrapper: Function, method: Function): void {
  Object.defineProperty(wrapper, 'name', { value: method.name, configurable: true });
  Object.defineProperty(wrapper, 'length', { value: method.length, configurable: true });
  for (const key of Reflect.getMetadataKeys(method) as unknown[]) {
    Reflect.defineMetadata(key, Reflect.getMetadata(key, method), wrapper);
  }
}

/** Why a decorator cannot work there, in words; undefined where it may. */
function wrongPlace(target: unknown, name: unknown, descriptor: unknown): string | undefined {
  if (name === undefined) {
    return typeof descriptor === 'number' ? 'is on a parameter of the constructor' : 'is on a class, and not on a method of it';
  }
  if (typeof descriptor === 'number') {
    return `is on parameter ${descriptor + 1}, which @LockKey('name') gives a name for the key`;
  }
  if (typeof target === 'function') {
    return 'does not work on static methods, which belong to no instance that Nest could give its locks';
  }
  return descriptor === undefined ? 'is on a property, which has no method yet when the class is loaded' : undefined;
}

/** Whether it is the second argument of a standard decorator: https://github.com/tc39/proposal-decorators. */
function isContext(name: unknown): name is { readonly name?: string | symbol } {
  return typeof name === 'object' && name !== null && 'kind' in name;
}

function nameOf(target: unknown): string {
  const owner = typeof target === 'function' ? target : (target as object | undefined)?.constructor;
  return owner?.name ?? '';
}
