import { ConfigurableModuleBuilder, Inject, type Type } from '@nestjs/common';
import { checkSwitch } from '../core/words/check-options.js';
import { LockConfigurationError } from '../core/words/errors.js';
import { shown } from '../core/words/shown.js';
import { nameCounterparts } from './application/counterparts.js';
import { injectionToken } from './injection-token.js';
import type { LockModuleOptions } from './lock-module.options.js';
import { LockService } from './lock.service.js';

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN, OPTIONS_TYPE, ASYNC_OPTIONS_TYPE } =
  new ConfigurableModuleBuilder<LockModuleOptions>()
    .setClassMethodName('forRoot')
    .setFactoryMethodName('createLockOptions')
    .setExtras(
      {
        /** Whether every module of the application sees the locks. Default: `true`. */
        isGlobal: true,
        /** The names of the stores that `@InjectLocks(name)` asks for; `forRoot()` knows them from its options. */
        storeNames: [] as readonly string[],
      },
      (definition, { isGlobal, storeNames }) => {
        checkSwitch('LockModule', 'isGlobal', isGlobal);
        const services = checkStoreNames(storeNames)
          .filter((name) => name !== 'default')
          .map(namedService);
        return {
          ...definition,
          // A spread may have set it to undefined.
          global: isGlobal ?? true,
          providers: [...(definition.providers ?? []), ...services],
          exports: [...(definition.exports ?? []), ...services.map(({ provide }) => provide)],
        };
      },
    )
    .build();

nameCounterparts(ConfigurableModuleClass, 'LockModule', {
  register: 'forRoot({ store })',
  registerAsync: 'forRootAsync({ useFactory })',
  forFeature: 'forRoot() once, in the root module: it is global',
});

/** Throws `LockConfigurationError` for a value that is no list of names. */
export function checkStoreNames(names: readonly string[] = []): readonly string[] {
  const wrong: unknown = Array.isArray(names) ? names.find((name: unknown) => typeof name !== 'string') : names;
  if (wrong !== undefined) {
    throw new LockConfigurationError(`LockModule: storeNames is, or has, ${shown(wrong)}. Pass a list of names, such as ['reports'].`);
  }
  return names;
}

/**
 * Injects the `LockService` of a named store:
 * `constructor(@InjectLocks('reports') private readonly locks: LockService)`.
 */
export function InjectLocks(store = 'default'): PropertyDecorator & ParameterDecorator {
  return Inject(store === 'default' ? LockService : tokenOf(store));
}

function tokenOf(store: string): Type {
  return injectionToken(
    `LockService of the store '${store}': name it in the stores of LockModule.forRoot(), or in storeNames of .forRootAsync()`,
  );
}

function namedService(store: string): { provide: Type; inject: [typeof LockService]; useFactory: (locks: LockService) => LockService } {
  return {
    provide: tokenOf(store),
    inject: [LockService],
    // A test may have replaced the service by an object without it.
    useFactory: (locks: LockService & { sibling?: LockService['sibling'] }) => locks.sibling?.(store, `@InjectLocks('${store}')`) ?? locks,
  };
}
