import { parseCall } from '../core/call.js';
import type { LeadOptions } from '../core/candidate.js';
import { checkOptions } from '../core/check-options.js';
import { parseDuration } from '../core/duration.js';
import { LockConfigurationError } from '../core/errors.js';
import { checkKey } from '../core/lock-key.js';
import type { Lock } from '../core/lock.js';
import { requestLockService } from './locked-instance.js';

/** The options of `@Leader`. */
export interface LeaderOptions extends Omit<LeadOptions, 'signal' | 'by'> {
  /** What the processes lead by: the key of the leader's lock, taken literally. */
  key: string;
  /** The store that keeps it, where the application has several. Default: `'default'`. */
  store?: string | undefined;
}

/** A method that `@Leader` runs. */
export type LeaderMethod = (lock: Lock) => PromiseLike<unknown>;

/** A method that runs in one process of all. */
export interface LeaderMark {
  readonly method: string | symbol;
  /** `Class.method`, for messages. */
  readonly site: string;
  readonly store: string;
  readonly key: string;
  readonly options: LeadOptions;
}

const MARKS = Symbol('methods of leaders');

/**
 * Has one process of all run a method, from `onApplicationBootstrap` on: `LockService.lead()` with the method as its body. It gets the
 * lock, and has to end soon after `lock.signal` aborts. It ends at the shutdown of the application.
 *
 * Works on instance methods of singletons. Throws `LockConfigurationError` and `LockKeyError` while the class is loaded where the options are
 * wrong, and at bootstrap for a provider that is made for each request or each time it is injected.
 */
export function Leader(
  options: string | LeaderOptions,
): <Method extends LeaderMethod>(
  target: object & { readonly prototype?: never },
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void {
  return (target, name, descriptor) => {
    const isStatic = typeof target === 'function';
    const site = `${isStatic ? (target as Function).name : target?.constructor?.name}.${String(name)}`;
    if (isStatic || typeof (descriptor as PropertyDescriptor | undefined)?.value !== 'function') {
      throw new LockConfigurationError(
        `${site}: @Leader() works on instance methods, with "experimentalDecorators" in tsconfig.json. ` +
          'Move it to a method of a provider; for other code use LockService.lead().',
      );
    }
    const mark = markOf(typeof options === 'string' ? { key: options } : options, name, site);
    Reflect.defineMetadata(MARKS, [...leaderMarksOf(target).filter(({ method }) => method !== name), mark], target);
    requestLockService(target, mark);
  };
}

/** The methods of an instance that `@Leader` marks, those of its superclasses included. */
export function leaderMarksOf(instance: object): readonly LeaderMark[] {
  return (Reflect.getMetadata(MARKS, instance) as readonly LeaderMark[] | undefined) ?? [];
}

function markOf(given: LeaderOptions, method: string | symbol, site: string): LeaderMark {
  checkOptions(`${site}: @Leader()`, given, ['key', 'ttl', 'pause', 'name', 'store']);
  const { key, ttl, pause, name, store = 'default' } = given;
  checkKey(key, site);
  parseCall({ ttl, name }, { ttlMs: 0, waitMs: 0, maxHoldMs: 0 }, site);
  if (pause !== undefined) {
    parseDuration(pause, 'pause', 1, site);
  }
  return { method, site, store, key, options: { ttl, pause, name, by: site } };
}
