import type { AssignmentProperty, Pattern } from 'acorn';

/** The way from an argument to a value in it. */
interface Way {
  readonly path: readonly string[];
  /** Whether a default value stands on the way, which only the method itself sees. */
  readonly hasDefault: boolean;
  /** The part of a pattern after which only the method itself knows the value; `path` is then an example. */
  readonly hiddenBy?: 'an array pattern' | 'a rest element' | 'a computed key';
}

/** A name that a pattern binds, and where its value is. */
export interface BoundName extends Way {
  readonly name: string;
}

/** The names that a parameter or variable declares: one for `a`, several for `{ a, b }`. */
export function boundNames(pattern: Pattern | null, way: Way = { path: [], hasDefault: false }): BoundName[] {
  switch (pattern?.type) {
    case 'Identifier':
      return [{ ...way, name: pattern.name }];
    case 'AssignmentPattern':
      return boundNames(pattern.left, { ...way, hasDefault: true });
    case 'RestElement':
      return boundNames(pattern.argument, { ...way, hiddenBy: 'a rest element' });
    case 'ArrayPattern':
      return pattern.elements.flatMap((element, at) =>
        boundNames(element, { ...way, path: [...way.path, String(at)], hiddenBy: 'an array pattern' }),
      );
    case 'ObjectPattern':
      return pattern.properties.flatMap((property) =>
        property.type === 'Property'
          ? boundNames(property.value, throughProperty(way, property))
          : boundNames(property, { ...way, path: [...way.path, 'name'] }),
      );
    default:
      return [];
  }
}

/**
 * Whether the name is also the name of its property: `{ id }`. Minifiers keep properties and write `{ id: a }`, so the
 * author wrote this name.
 */
export function isShorthand({ name, path, hiddenBy }: BoundName): boolean {
  return path.at(-1) === name && hiddenBy === undefined;
}

function throughProperty(way: Way, { key, computed }: AssignmentProperty): Way {
  if (computed || (key.type !== 'Identifier' && key.type !== 'Literal')) {
    return { ...way, path: [...way.path, 'name'], hiddenBy: 'a computed key' };
  }
  return { ...way, path: [...way.path, key.type === 'Identifier' ? key.name : String(key.value)] };
}
