/** What a field of a message has to be: a kind of value, one of several texts, a list, an object, or one of them that may be left out. */
export type Shape = 'text' | 'number' | 'boolean' | readonly string[] | { readonly list: Shape } | { readonly maybe: Shape } | Fields;

/** The fields of an object. It may have others, which newer versions send. */
export interface Fields {
  readonly [field: string]: Shape;
}

/** The longest text in a message: a key of 1,024 bytes, and what else may stand in it. */
const LONGEST_TEXT = 2_000;
/** The longest text that is a name: such texts are cut, since they may be of any length. */
const LONGEST_NAME = 200;

/** A name, as messages have it. */
export function brief(name: string): string {
  return name.slice(0, LONGEST_NAME);
}

/** Whether a value that somebody sent is what it should be. */
export function fits(value: unknown, shape: Shape): boolean {
  switch (shape) {
    case 'text':
      return typeof value === 'string' && value.length <= LONGEST_TEXT;
    case 'number':
      return typeof value === 'number' && Number.isFinite(value);
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

function has<Name extends 'list' | 'maybe'>(shape: object, name: Name): shape is { readonly [N in Name]: Shape } {
  return name in shape;
}
