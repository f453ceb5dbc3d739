/** What a server is. One that is compatible with another also gives the version of that one, so it says more than its version. */
export interface Product {
  /** Such as `Valkey`. */
  readonly name: string;
  /** As the server writes it. */
  readonly version: string;
  /** What is known not to hold there, and what to do; undefined where nothing is. */
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
