import { Inject } from '@nestjs/common';
import { checkText } from '../../core/words/check-options.js';
import { LockConfigurationError, putHidden } from '../../core/words/errors.js';
import { injectionToken } from '../injection-token.js';

/** The token under which decorated classes ask for their application's service; Nest shows it where it is missing. */
export const LOCK_SERVICE_TOKEN = injectionToken(
  'LockService of LockModule.forRoot() or .forRootAsync(): import it in the root module, or LockModule.forTesting() in a test',
);

/** Where an instance keeps its service; not enumerable. */
export const LOCK_SERVICE = Symbol('LockService');
/** Which stores the locked methods of a class need. */
const STORES = Symbol('stores of locked methods');

/** The part of its service that a locked instance needs. A replaced service need not have it. */
export interface StoreServices {
  /** The service of another store of the same application. */
  sibling?(store: string, site: string): StoreServices;
}

interface StoreOfMethod {
  readonly site: string;
  readonly store: string;
  /** Whether so far only a parameter of the method has a decorator of this library. */
  readonly isUnlocked?: boolean;
}

/** The service that an instance was given; undefined where neither Nest nor `attach()` gave it one. */
export function lockServiceOf(instance: unknown): StoreServices | undefined {
  return (instance as { [LOCK_SERVICE]?: StoreServices } | null | undefined)?.[LOCK_SERVICE];
}

/**
 * Gives an instance its service. Throws `LockConfigurationError` where a locked method names a store that is unknown,
 * and where a method with `@LockKey` is not locked.
 */
export function giveLockService(instance: object, service: StoreServices): void {
  for (const method of (Reflect.getMetadata(STORES, instance) ?? []) as readonly StoreOfMethod[]) {
    if (method.isUnlocked) {
      throw new LockConfigurationError(
        `${method.site}: @LockKey() needs @DistributedLock() on the method of its parameter. Add it, or leave @LockKey() out.`,
      );
    }
    serviceOfStore(service, method);
  }
  if (!Object.isExtensible(instance)) {
    throw new LockConfigurationError(
      `${instance.constructor?.name} has locked methods, and its constructor froze the instance, which cannot be given its LockService. ` +
        'Leave out Object.freeze(this), or freeze the fields instead.',
    );
  }
  putHidden(instance, LOCK_SERVICE, service);
}

/** The service of one of the application's stores. A replaced service stands for all of them. */
export function serviceOfStore(service: StoreServices, { store, site }: StoreOfMethod): StoreServices {
  // A mock may answer nothing.
  return (service.sibling?.(store, site) as StoreServices | undefined) ?? service;
}

/** Makes Nest inject the service into every instance of a class, by one property that is not enumerable. */
export function requestLockService(prototype: object, method: StoreOfMethod): void {
  const { site, store } = method;
  checkText(site, 'store', store, 'Pass the name of a store.');
  const others = ((Reflect.getMetadata(STORES, prototype) ?? []) as readonly StoreOfMethod[]).filter(
    (other) => !other.isUnlocked || other.site !== site,
  );
  Reflect.defineMetadata(STORES, [...others, method], prototype);
  if (LOCK_SERVICE in prototype) {
    return;
  }
  Object.defineProperty(prototype, LOCK_SERVICE, {
    configurable: true,
    get: () => undefined,
    set(this: object, service: StoreServices) {
      giveLockService(this, service);
    },
  });
  Inject(LOCK_SERVICE_TOKEN)(prototype, LOCK_SERVICE);
}
