import { parseCall } from '../../core/words/call-options.js';
import type { LeadOptions } from '../../leader/candidate.js';
import { checkOptions, type OptionNames } from '../../core/words/check-options.js';
import { parseDuration } from '../../core/words/duration.js';
import { LockConfigurationError } from '../../core/words/errors.js';
import { checkLiteralKey } from '../../core/words/lock-key.js';
import type { Lock } from '../../core/words/lock.js';
import { decoratedMethod, imitate, oneArgument } from './decorated-method.js';
import { requestLockService } from './locked-instance.js';

/** The options of `@Leader`. */
export interface LeaderOptions extends Omit<LeadOptions, 'signal' | 'by'> {
  /** The key of the leader's lock, taken literally: the processes lead by it. */
  key: string;
  /** The store that keeps it, where the application has several. Default: `'default'`. */
  store?: string | undefined;
}

/** A method that `@Leader` runs. */
export type LeaderMethod = (lock: Lock) => PromiseLike<unknown>;

/** The decorator that `@Leader` makes of its options. */
export type LeaderDecorator = <Method extends LeaderMethod>(
  target: object & { readonly prototype?: never },
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

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

const OPTIONS: OptionNames<LeaderOptions> = { key: true, ttl: true, pause: true, name: true, store: true };

/**
 * Has one process of all run a method, from `onApplicationBootstrap` on: `LockService.lead()` with the method as its
 * body. The method gets the lock, and has to end soon after `lock.signal` aborts. The candidacy ends at the shutdown of
 * the application.
 *
 * The method rejects with a `LockConfigurationError` where other code calls it without that lock. Works on instance
 * methods of singletons. Throws `LockConfigurationError` and `LockKeyError` while the class is loaded where the options
 * are wrong, and at bootstrap for a method that has a schedule too, or a provider that is made for each request or each
 * time it is injected.
 */
export function Leader(options: string | LeaderOptions): LeaderDecorator;
export function Leader(options: string | LeaderOptions, ...more: unknown[]): LeaderDecorator {
  oneArgument('@Leader()', more, "@Leader({ key: 'feed-reader', ttl: '5s' })");
  return (target, name, descriptor) => {
    const { site, body } = decoratedMethod('@Leader()', target, name, descriptor, 'LockService.lead()');
    const mark = markOf(typeof options === 'string' ? { key: options } : options, name, site);
    Reflect.defineMetadata(MARKS, [...leaderMarksOf(target).filter(({ method }) => method !== name), mark], target);
    requestLockService(target, mark);
    const wrapper = async function (this: unknown, ...args: unknown[]): Promise<unknown> {
      checkLock(args[0], markOn(this, name) ?? mark);
      return body.apply(this, args);
    };
    imitate(wrapper, body);
    (descriptor as PropertyDescriptor).value = wrapper;
  };
}

/** The methods of an instance that `@Leader` marks, with the methods of its superclasses. */
export function leaderMarksOf(instance: object): readonly LeaderMark[] {
  return (Reflect.getMetadata(MARKS, instance) as readonly LeaderMark[] | undefined) ?? [];
}

/** The mark of an instance for that method, which a subclass may have marked anew. */
function markOn(instance: unknown, name: string | symbol): LeaderMark | undefined {
  return instance instanceof Object ? leaderMarksOf(instance).find(({ method }) => method === name) : undefined;
}

function markOf(given: LeaderOptions, method: string | symbol, site: string): LeaderMark {
  checkOptions(`${site}: @Leader()`, given, OPTIONS);
  const { key, ttl, pause, name, store = 'default' } = given;
  checkLiteralKey(key, site);
  parseCall({ ttl, name }, { ttlMs: 0, waitMs: 0, maxHoldMs: 0 }, site);
  if (pause !== undefined) {
    parseDuration(pause, 'pause', 1, site);
  }
  return { method, site, store, key, options: { ttl, pause, name, by: site } };
}

/** Throws `LockConfigurationError` if the caller does not pass the leader's lock: `@Cron`, for example, passes none. */
function checkLock(lock: unknown, { site, key }: LeaderMark): void {
  const keys: unknown = (lock as Partial<Lock> | null | undefined)?.keys;
  if (!Array.isArray(keys) || !keys.includes(key)) {
    throw new LockConfigurationError(
      `${site}: this method was called without the lock on "${key}". @Leader() runs it in the process that leads, so do not call it. ` +
        `Move what others call to another method; in a test pass the lock: locks.withLock('${key}', (lock) => …).`,
      key,
    );
  }
}
