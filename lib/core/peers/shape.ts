/** What a field of a message has to be: a kind of value with or without `?`, one of several texts, a list, or an object. */
export type Shape = 'text' | 'number' | 'number?' | 'boolean' | 'any' | readonly string[] | { readonly list: Shape } | Fields;

/** The fields of an object. It may have others, which newer versions send. */
export interface Fields {
  readonly [field: string]: Shape;
}

/** The longest text in a message: a key of 1,024 bytes, and what else may stand in it. */
const LONGEST_TEXT = 2_000;

/** Whether a value that somebody sent is what it should be. */
export function fits(value: unknown, shape: Shape): boolean {
  switch (shape) {
    case 'any':
      return true;
    case 'text':
      return typeof value === 'string' && value.length <= LONGEST_TEXT;
    case 'number':
      return typeof value === 'number' && Number.isFinite(value);
    case 'number?':
      return value === undefined || fits(value, 'number');
    case 'boolean':
      return typeof value === 'boolean';
    default:
      return fitsParts(value, shape);
  }
}

function fitsParts(value: unknown, shape: readonly string[] | { readonly list: Shape } | Fields): boolean {
  if (Array.isArray(shape)) {
    return shape.includes(value);
  }
  if (isList(shape)) {
    return Array.isArray(value) && value.every((item) => fits(item, shape.list));
  }
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.entries(shape).every(([field, its]) => fits((value as Record<string, unknown>)[field], its as Shape))
  );
}

function isList(shape: object): shape is { readonly list: Shape } {
  return 'list' in shape;
}
