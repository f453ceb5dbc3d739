import { expect } from '@jest/globals';

/** Matches an error of the library by what it tells developers: `expect(call).rejects.toThrow(saying(/held by/))`. */
export function saying(text: string | RegExp): Error {
  return expect.objectContaining({
    detail: typeof text === 'string' ? expect.stringContaining(text) : expect.stringMatching(text),
  }) as unknown as Error;
}
