import type { ModulesContainer } from '@nestjs/core';

/** What Nest knows of each provider, injectable and controller of an application. */
export function madeByNest(modules: ModulesContainer) {
  return [...modules.values()].flatMap((module) =>
    [module.providers, module.injectables, module.controllers].flatMap((made) => Array.from(made.values())),
  );
}
