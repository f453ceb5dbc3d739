/**
 * The form of a field of a message: a kind of value, one of several texts, a list, an object, or one of them that may
 * be left out. `count`: a whole number from 0, such as a fence. `ms`: a time span. `offset`: one that may be negative.
 * `or`: stands for a value that is missing. Words of a closed set are texts: a process of a later version may have
 * others.
 */
export type Shape =
  | 'text'
  | 'count'
  | 'textOrCount'
  | 'ms'
  | 'offset'
  | 'boolean'
  | readonly string[]
  | { readonly list: Shape }
  | { readonly maybe: Shape; readonly or?: unknown }
  | Fields;

/** The fields of an object. It may have others, which newer versions send. */
export interface Fields {
  readonly [field: string]: Shape;
}

/** The longest text in a message: a key of 1,024 bytes, and the words around it. */
const LONGEST_TEXT = 2_000;
/** The longest time span, in milliseconds: a hundred years. With it, a date is one. */
const LONGEST_MS = 36_525 * 86_400_000;
/** The longest text that is a name: such texts are cut, since they may be of any length. */
const LONGEST_NAME = 200;

/** A name, as messages have it. */
export function brief(name: string): string {
  return name.slice(0, LONGEST_NAME);
}

/** Whether a value that somebody sent has the right shape. */
export function fits(value: unknown, shape: Shape): boolean {
  switch (shape) {
    case 'text':
      return typeof value === 'string' && value.length <= LONGEST_TEXT;
    case 'count':
      return Number.isSafeInteger(value) && (value as number) >= 0;
    case 'textOrCount':
      return fits(value, 'text') || fits(value, 'count');
    case 'ms':
    case 'offset':
      return typeof value === 'number' && value >= (shape === 'ms' ? 0 : -LONGEST_MS) && value <= LONGEST_MS;
    case 'boolean':
      return typeof value === 'boolean';
    default:
      return fitsParts(value, shape);
  }
}

function fitsParts(value: unknown, shape: Exclude<Shape, string>): boolean {
  if (Array.isArray(shape)) {
    return shape.includes(value);
  }
  if (has(shape, 'maybe')) {
    return value === undefined || fits(value, shape.maybe);
  }
  if (has(shape, 'list')) {
    return Array.isArray(value) && value.every((item) => fits(item, shape.list));
  }
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.entries(shape).every(([field, its]) => fits((value as Record<string, unknown>)[field], its as Shape))
  );
}

function has<Name extends 'list' | 'maybe'>(
  shape: Shape,
  name: Name,
): shape is { readonly [N in Name]: Shape } & { readonly or?: unknown } {
  return typeof shape === 'object' && name in shape;
}

/** A copy of a value that fits: defaults stand for missing fields, and fields that its shape does not name are gone. */
export function onlyShaped<T>(value: T, shape: Shape): T {
  return shaped(value, shape) as T;
}

function shaped(value: unknown, shape: Shape): unknown {
  if (has(shape, 'maybe')) {
    return value === undefined ? shape.or : shaped(value, shape.maybe);
  }
  if (typeof shape === 'string' || Array.isArray(shape)) {
    return value;
  }
  if (has(shape, 'list')) {
    return (value as readonly unknown[]).map((item) => shaped(item, shape.list));
  }
  const fields = value as Record<string, unknown>;
  return Object.fromEntries(Object.entries(shape).map(([field, its]) => [field, shaped(fields[field], its as Shape)]));
}
