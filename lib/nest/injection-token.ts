import type { Type } from '@nestjs/common';

const TOKENS = Symbol.for('nestjs-distributed-lock:tokens');

/**
 * A token to inject by, which is a class with a text as its name: Nest shows the text where nothing provides it, and
 * tools for tests make mocks of classes only. One for each text, for a second copy of this package too.
 */
export function injectionToken(text: string): Type {
  const shared = globalThis as { [TOKENS]?: Map<string, Type> };
  const tokens = (shared[TOKENS] ??= new Map<string, Type>());
  // oxlint-disable-next-line typescript/no-extraneous-class -- it stands for its name
  const token = tokens.get(text) ?? Object.defineProperty(class {}, 'name', { value: text });
  tokens.set(text, token);
  return token;
}
