/** What a locked method gives back, and so how long its lock is held. */
export type ReturnKind = 'promise' | 'observable' | 'generator';

type Tag = '[object AsyncFunction]' | '[object AsyncGeneratorFunction]' | '[object Function]';

/** Whether the source alone says that a function returns a promise. */
export function isAsyncFunction(method: Function): boolean {
  return tagOf(method) === '[object AsyncFunction]';
}

/** Async functions and generators speak for themselves; others by their declared type, and are taken for promises otherwise. */
export function returnKindOf(method: Function, declared: unknown): ReturnKind {
  switch (tagOf(method)) {
    case '[object AsyncFunction]':
      return 'promise';
    case '[object AsyncGeneratorFunction]':
      return 'generator';
    default:
      return typeof declared === 'function' && isObservable(declared.prototype) ? 'observable' : 'promise';
  }
}

/** By what it can do, not by its class: an application may have two copies of rxjs. */
export function isObservable(value: unknown): boolean {
  return hasMethod(value, 'subscribe') && hasMethod(value, 'pipe');
}

export function isPromise(value: unknown): boolean {
  return hasMethod(value, 'then');
}

export function isAsyncIterable(value: unknown): boolean {
  return hasMethod(value, Symbol.asyncIterator);
}

function hasMethod(value: unknown, name: string | symbol): boolean {
  return typeof value === 'object' && value !== null && typeof (value as Record<string | symbol, unknown>)[name] === 'function';
}

function tagOf(method: Function): Tag {
  return Object.prototype.toString.call(method) as Tag;
}
