import { Inject, Module, type OnModuleDestroy } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';

/** The method of a module that is called before Nest ends any module. It is called twice. */
export const ENDS_FIRST = Symbol('ends first');

type EndsFirst = Partial<Record<typeof ENDS_FIRST, () => Promise<void>>> | undefined;

/**
 * A module that Nest ends first. Nest ends modules in the order of their distances from the root module: Nest 10 the
 * farthest one first, and later versions the nearest one. So one module is farther than all others, and one nearer.
 */
abstract class Outermost implements OnModuleDestroy {
  readonly #modules: ModulesContainer;

  constructor(modules: ModulesContainer, distance: number) {
    this.#modules = modules;
    for (const module of modules.values()) {
      if (module.metatype === this.constructor) {
        module.distance = distance;
      }
    }
  }

  async onModuleDestroy(): Promise<void> {
    await Promise.all([...this.#modules.values()].map(async ({ instance }) => (instance as EndsFirst)?.[ENDS_FIRST]?.()));
  }
}

@Module({})
export class NearestModule extends Outermost {
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    super(modules, -1);
  }
}

@Module({})
export class FarthestModule extends Outermost {
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    super(modules, Infinity);
  }
}
