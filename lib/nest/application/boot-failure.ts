import type { ModulesContainer } from '@nestjs/core';
import { setImmediate as turn } from 'node:timers/promises';
import { madeByNest } from './made-by-nest.js';

/**
 * Resolves with the error that a provider or controller threw while Nest made the instances of an application, and with
 * undefined once all are made. Nest calls no hook of an application whose boot has failed, but it keeps for each
 * instance how its making ended.
 */
export async function bootFailure(modules: ModulesContainer): Promise<unknown> {
  const seen = new Set<Promise<unknown>>();
  for (;;) {
    const making = endsOf(modules).filter((end) => !seen.has(end));
    if (making.length === 0) {
      return undefined;
    }
    making.forEach((end) => seen.add(end));
    const failure = await firstFailure(making);
    if (failure !== undefined) {
      return failure;
    }
    // Controllers are made after the providers of their module.
    await turn();
  }
}

/** How the making of each instance ends, as far as it has begun: with an error, or with undefined. */
function endsOf(modules: ModulesContainer): Promise<unknown>[] {
  return madeByNest(modules).flatMap(({ settlementSignal }) => settlementSignal?.asPromise() ?? []);
}

function firstFailure(ends: readonly Promise<unknown>[]): Promise<unknown> {
  return new Promise((resolve) => {
    for (const end of ends) {
      void end.then((failure) => failure !== undefined && resolve(failure));
    }
    void Promise.all(ends).then(() => resolve(undefined));
  });
}
