import {
  Inject,
  Logger,
  Module,
  type DynamicModule,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type Type,
} from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import type { Candidate } from '../leader/candidate.js';
import { ENDS_FIRST, FarthestModule, NearestModule } from './application/before-all-modules.js';
import { bootFailure } from './application/boot-failure.js';
import { printable } from '../core/words/shown.js';
import { checkMethods, checkOptions, checkSwitch, type OptionNames } from '../core/words/check-options.js';
import { checkPrefix } from '../core/words/lock-key.js';
import { startLeaders } from './methods/leaders.js';
import { LockOperations } from './lock.operations.js';
import { LockService } from './lock.service.js';
import {
  checkDeadlocks,
  checkFunctions,
  checkMaxWaiters,
  checkNames,
  checkTelemetry,
  refuseStore,
  storesOf,
  type LockModuleOptions,
  type LockTestOptions,
} from './lock-module.options.js';
import {
  checkStoreNames,
  ConfigurableModuleClass,
  MODULE_OPTIONS_TOKEN,
  type ASYNC_OPTIONS_TYPE,
  type OPTIONS_TYPE,
} from './lock.module-definition.js';
import { LockConfigurationError } from '../core/words/errors.js';
import type { LockTrouble } from '../core/words/lock-event.js';
import { LOCK_SERVICE_TOKEN } from './methods/locked-instance.js';
import { TroubleLog } from './trouble-log.js';
import { MemoryLockStore } from '../memory/memory-lock-store.js';

const logger = new Logger('LockModule');

/**
 * How long after the bootstrap of this module the shutdown hooks have to be enabled, in milliseconds: the bootstrap of
 * other modules may take a while.
 */
const HOOKS_MS = 5_000;

const ASYNC_OPTIONS: OptionNames<typeof ASYNC_OPTIONS_TYPE> = {
  useFactory: true,
  useClass: true,
  useExisting: true,
  inject: true,
  imports: true,
  provideInjectionTokensFrom: true,
  isGlobal: true,
  storeNames: true,
};

/** The services of an application's stores, by name. */
class LockServices extends Map<string, LockService> {
  constructor(options: LockModuleOptions | undefined, modules: ModulesContainer) {
    super();
    checkNames(options);
    checkFunctions(options);
    checkSwitch('LockModule', 'debug', options.debug);
    const prefix = checkPrefix(options.prefix ?? 'lock');
    const troubles = new TroubleLog();
    for (const [name, store] of storesOf(options)) {
      const settings = {
        name,
        store,
        ttl: options.ttl ?? '10s',
        wait: options.wait ?? '5s',
        maxHold: options.maxHold,
        maxWaiters: checkMaxWaiters(options.maxWaiters),
        onUnavailable: options.onUnavailable,
        deadlocksAfterMs: checkDeadlocks(options.deadlocks),
        telemetry: checkTelemetry(options.telemetry),
        describe: options.describe,
        transaction: options.transaction,
        onTrouble: (trouble: LockTrouble) => troubles.write(trouble),
        debug: options.debug ? (line: string) => logger.debug(printable(line)) : undefined,
        open: {
          prefix,
          warn: (message: string) => logger.warn(printable(name === 'default' ? message : `Store '${name}': ${message}`)),
        },
        modules,
      };
      this.set(name, new LockService(settings, this));
    }
  }

  /** Whether locks stay taken, and connections open, when the process ends without a shutdown. */
  get outliveProcess(): boolean {
    return [...this.values()].some((service) => service.outlivesProcess);
  }

  /** Runs a function for each service, all at once. */
  async all(run: (service: LockService) => Promise<void>): Promise<void> {
    await Promise.all([...this.values()].map(run));
  }

  shutdown(): Promise<void> {
    return this.all((service) => service.shutdown());
  }
}

/**
 * Makes `@DistributedLock` and `LockService` work in an application: import `forRoot()` or `forRootAsync()` once, in
 * the root module. Global unless `isGlobal: false`. At shutdown, once the server has drained, it rejects waiters,
 * releases held locks and closes the connections that its stores made.
 */
@Module({
  imports: [NearestModule, FarthestModule],
  providers: [
    {
      provide: LockServices,
      inject: [{ token: MODULE_OPTIONS_TOKEN, optional: true }, ModulesContainer],
      useFactory: (options: LockModuleOptions | undefined, modules: ModulesContainer) => new LockServices(options, modules),
    },
    { provide: LockService, inject: [LockServices, ModulesContainer], useFactory: openAll },
    { provide: LOCK_SERVICE_TOKEN, useExisting: LockService },
    // A test may have replaced the service by an object that has none.
    {
      provide: LockOperations,
      inject: [LockServices, LockService],
      useFactory: (services: LockServices) => (services.get('default') as LockService).operations,
    },
    // Made once whatever the options inject, so Nest calls its hook.
    {
      provide: checkMadeOnce,
      inject: [ModulesContainer],
      useFactory: (modules: ModulesContainer) => ({ onModuleInit: () => checkMadeOnce(modules) }),
    },
  ],
  exports: [LockService, LockOperations, LOCK_SERVICE_TOKEN],
})
export class LockModule extends ConfigurableModuleClass implements OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown {
  readonly #services: LockServices;

  readonly #modules: ModulesContainer;

  #candidates: readonly Candidate[] = [];

  #hooksCheck: NodeJS.Timeout | undefined;

  constructor(@Inject(LockServices) services: LockServices, @Inject(ModulesContainer) modules: ModulesContainer) {
    super();
    this.#services = services;
    this.#modules = modules;
  }

  static override forRoot(options: typeof OPTIONS_TYPE): DynamicModule {
    refuseStore(options);
    return super.forRoot({ ...options, storeNames: options?.storeNames ?? Object.keys(options?.stores ?? {}) });
  }

  static override forRootAsync(options: typeof ASYNC_OPTIONS_TYPE): DynamicModule {
    const site = 'LockModule.forRootAsync';
    const given = (options as typeof ASYNC_OPTIONS_TYPE | undefined) ?? {};
    refuseStore(given);
    checkOptions(site, given, ASYNC_OPTIONS);
    if (!given.useFactory && !given.useClass && !given.useExisting) {
      throw new LockConfigurationError(
        `${site}: nothing makes the options. Pass useFactory, useClass or useExisting, such as { useFactory: () => ({ store }) }.`,
      );
    }
    return super.forRootAsync(given);
  }

  /**
   * The module for users' tests: locks in memory that do not end by time, without timers while nothing is contended.
   * `storeNames` are the stores besides `default` that the code under test names. With a `controller`, a `LockTesting`
   * of `nestjs-distributed-lock/testing`, the test makes faults and sees what was locked.
   */
  static forTesting(options: LockTestOptions = {}): DynamicModule {
    checkOptions('LockModule.forTesting', options, { storeNames: true, controller: true });
    const { storeNames, controller } = options;
    const names = ['default', ...checkStoreNames(storeNames)];
    if (!controller) {
      const stores = names.map((name) => [name, new MemoryLockStore({ expires: false })] as const);
      return LockModule.forRoot({ stores: Object.fromEntries(stores) });
    }
    const cure = 'Pass new LockTesting() of nestjs-distributed-lock/testing.';
    checkMethods('LockModule.forTesting: controller', controller, ['storesFor'], cure);
    const {
      providers = [],
      exports = [],
      ...module
    } = LockModule.forRoot({
      stores: controller.storesFor(names),
      telemetry: controller.telemetry,
    });
    const token = controller.constructor as Type;
    return { ...module, providers: [...providers, { provide: token, useValue: controller }], exports: [...exports, token] };
  }

  async onApplicationBootstrap(): Promise<void> {
    const modules = [...this.#modules.values()].filter(({ metatype }) => metatype === LockModule);
    const isFirst = Object.is(modules[0]?.instance, this);
    if (modules.length > 1 && isFirst) {
      logger.warn(
        `LockModule is imported ${modules.length} times, and each has its own LockService: calls do not re-enter from one into another. ` +
          'Import LockModule.forRoot() or .forRootAsync() once, in the root module.',
      );
    }
    if (this.#services.outliveProcess) {
      // An application context is bootstrapped, all its modules, before its caller can enable the hooks.
      this.#hooksCheck = setTimeout(warnWithoutHooks, HOOKS_MS).unref();
    }
    if (isFirst) {
      await this.#startLeaders();
    }
  }

  /** Ends the check of the shutdown hooks. */
  async onModuleDestroy(): Promise<void> {
    clearTimeout(this.#hooksCheck);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#services.shutdown();
  }

  /** @internal Leaders end together, and before all modules: their code may need the resources that modules end. */
  async [ENDS_FIRST](): Promise<void> {
    // Nest has a mere prototype where the options are made for each request.
    if (#services in this) {
      await Promise.all([this.#services.all((service) => service.resign()), ...this.#candidates.map((candidate) => candidate.stop())]);
    }
  }

  async #startLeaders(): Promise<void> {
    try {
      this.#candidates = startLeaders(this.#modules);
    } catch (error) {
      // Nest calls no hook of an application whose boot has failed.
      await this.#services.shutdown();
      throw error;
    }
  }
}

/** Throws `LockConfigurationError` where the services would be made anew for each request. */
function checkMadeOnce(modules: ModulesContainer): void {
  for (const { providers } of modules.values()) {
    if (providers.get(LockServices)?.isDependencyTreeStatic() === false) {
      const injected = providers.get(MODULE_OPTIONS_TOKEN)?.getCtorMetadata() ?? [];
      const name = injected.find((wrapper) => !wrapper.isDependencyTreeStatic())?.name;
      throw new LockConfigurationError(
        `LockModule.forRootAsync injects ${String(name)}, which is made anew for each request, so that each request would have locks and ` +
          'connections of its own. Inject what is made once, such as ConfigService.',
      );
    }
  }
}

/** Connects the stores before anybody gets a service, so that locks work from everybody's `onModuleInit`. */
async function openAll(services: LockServices, modules: ModulesContainer): Promise<LockService> {
  try {
    await services.all((service) => service.open());
  } catch (error) {
    await services.shutdown();
    throw error;
  }
  if (services.outliveProcess) {
    void closeAfterFailure(services, modules);
  }
  return services.get('default') as LockService;
}

/** Nest calls no hook where another provider cannot be made, and only this module knows of the connections. */
async function closeAfterFailure(services: LockServices, modules: ModulesContainer): Promise<void> {
  if ((await bootFailure(modules)) !== undefined) {
    await services.shutdown();
  }
}

function warnWithoutHooks(): void {
  if (process.listenerCount('SIGTERM') === 0) {
    logger.warn(
      'Shutdown hooks are off for SIGTERM: locks that are held when the process is stopped stay taken until their ttl is over. ' +
        'Call app.enableShutdownHooks() at start-up.',
    );
  }
}
