import type { ModulesContainer } from '@nestjs/core';

/** Each provider, injectable and controller of an application, as Nest keeps it. */
export function madeByNest(modules: ModulesContainer) {
  return [...modules.values()].flatMap((module) =>
    [module.providers, module.injectables, module.controllers].flatMap((made) => Array.from(made.values())),
  );
}
