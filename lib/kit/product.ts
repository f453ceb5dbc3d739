/**
 * The product and version of a server. A server that is compatible with another product also gives the version of that
 * one, so the name is needed too.
 */
export interface Product {
  /** Such as `Valkey`. */
  readonly name: string;
  /** As the server writes it. */
  readonly version: string;
  /** A guarantee that is known not to hold on this product, and how to mend that; undefined where there is none. */
  readonly warning?: string;
}

/** The first pattern that fits the text; its group is the version. */
export function productIn(text: string, patterns: readonly (readonly [RegExp, string, string?])[]): Product | undefined {
  for (const [pattern, name, warning] of patterns) {
    const version = pattern.exec(text)?.[1];
    if (version !== undefined) {
      return { name, version, ...(warning !== undefined && { warning }) };
    }
  }
  return undefined;
}
