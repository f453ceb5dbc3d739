import type { Observable } from 'rxjs';
import type { LockOptions, OnUnavailable } from '../../core/words/call-options.js';
import type { Duration } from '../../core/words/duration.js';
import type { LockNotAcquiredError } from '../../core/words/errors.js';
import type { UnavailableError } from '../refused-call.js';
import type { ReturnKind } from './return-kind.js';

/** A method that can be locked: it returns a promise, an Observable or an async generator. */
export type LockableMethod = (...args: never[]) => PromiseLike<unknown> | Observable<unknown> | AsyncGenerator;

/** A function of a call of the method: `this` is the instance. */
export type OfCall<Self, Args extends unknown[], Result> = (this: Self, ...args: Args) => Result;

/**
 * The options of `@DistributedLock`. Durations are milliseconds, or strings such as `'30s'`. `key`, `ttl`, `wait`,
 * `signal`, `onBusy` and `onUnavailable` may be functions of the arguments, in which `this` is the instance:
 * `key(this: BalanceService, id: string) { … }`.
 */
export interface DistributedLockOptions<
  Args extends unknown[] = unknown[],
  Self = unknown,
  Answer = unknown,
  TimeArgs extends unknown[] = unknown[],
  SignalArgs extends unknown[] = unknown[],
  Away = unknown,
> extends Omit<LockOptions, 'ttl' | 'wait' | 'signal' | 'onUnavailable' | 'ticket' | 'by'> {
  /**
   * The key to lock: a template such as `'balance:<customerId>'`, `'<dto.accountId>'` or `'<0>'`, or a function of the
   * arguments that returns a key or a list of keys; make them with the tag `lockKey`, which escapes as templates do.
   */
  key: string | OfCall<Self, Args, string | readonly string[]>;
  /**
   * How long the lease outlives a crashed process; at least 100 ms. Default, also where a function returns undefined:
   * the module's, `'10s'`.
   */
  ttl?: Duration | OfCall<Self, TimeArgs, Duration | undefined> | undefined;
  /**
   * How long the call queues before it gives up; 0: not at all. Default, also where a function returns undefined: the
   * module's, `'5s'`.
   */
  wait?: Duration | OfCall<Self, TimeArgs, Duration | undefined> | undefined;
  /** Ends the wait when it aborts, so that the body never runs for a client that has gone. Does not end the body. */
  signal?: AbortSignal | OfCall<Self, SignalArgs, AbortSignal | undefined> | undefined;
  /**
   * `'throw'`; `'skip'`: resolve `undefined` or complete empty, with `wait: 0` unless set; or a function of the error
   * and the arguments, whose result is taken (an Observable emits it or subscribes to it, a generator returns it). Not
   * for a call that was aborted, or that closes a cycle. Default: `'throw'`.
   */
  onBusy?: 'throw' | 'skip' | ((this: Self, error: LockNotAcquiredError, ...args: Args) => Answer) | undefined;
  /**
   * `'wait'`; `'throw'`: fail at once with `LockStoreError` while the store is known to be away; or a function of the
   * error and the arguments: the call fails in the same cases, and with every error of a store that is away or refuses
   * all, and the function's result is taken. The method never runs without its lock. Default: the module's, `'wait'`.
   */
  onUnavailable?: OnUnavailable | ((this: Self, error: UnavailableError, ...args: Args) => Away) | undefined;
  /** The name of the store, where the application has several. Default: `'default'`. */
  store?: string | undefined;
  /**
   * The kind of value that the method returns, where its code and declared type do not say. Default: by its code, else
   * by its declared type, else `'promise'`.
   */
  returns?: ReturnKind | undefined;
}

/** The result of the method, and so of an answer in its place. */
type AnswerOf<Method extends LockableMethod> =
  ReturnType<Method> extends Observable<infer Value>
    ? Value | Observable<Value> | PromiseLike<Value | Observable<Value> | undefined> | undefined
    : ReturnType<Method> extends AsyncGenerator<unknown, infer Result>
      ? OrPromise<Result>
      : ReturnType<Method> extends PromiseLike<infer Result>
        ? OrPromise<Result>
        : never;

/** Whoever expects nothing may be answered anything. */
type OrPromise<Result> = void extends Result ? unknown : Result | PromiseLike<Result>;

/**
 * Refuses functions whose parameters do not fit, a skipped call whose result cannot be `undefined`, and answers of
 * another type.
 */
type Fits<Options extends Given, Method extends LockableMethod> = Accepts<
  Options['args'],
  Method,
  { readonly key: 'the parameters of the key function are not those of the method' }
> &
  Accepts<Options['timeArgs'], Method, { readonly ttl: 'the parameters of the function are not those of the method' }> &
  Accepts<Options['signalArgs'], Method, { readonly signal: 'the parameters of the function are not those of the method' }> &
  (Options['skips'] extends true
    ? MaySkip<Method>
    : MayAnswer<Options['answer'], Method, { readonly onBusy: 'what onBusy returns is not a result of the method' }>) &
  MayAnswer<Options['away'], Method, { readonly onUnavailable: 'what onUnavailable returns is not a result of the method' }>;

/** The argument types and answers of the options that a decorator was given. */
export interface Given {
  readonly args: unknown[];
  readonly timeArgs: unknown[];
  readonly signalArgs: unknown[];
  readonly answer: unknown;
  readonly away: unknown;
  readonly skips: boolean;
}

/** The type itself, which TypeScript then infers from the options alone and not from where the decorator stands. */
export type Uninferred<Type> = [Type][Type extends unknown ? 0 : never];

type Accepts<Args extends unknown[], Method extends LockableMethod, Refusal> = ((...args: Args) => unknown) extends (
  ...args: Parameters<Method>
) => unknown
  ? unknown
  : Refusal;

type MaySkip<Method extends LockableMethod> =
  ReturnType<Method> extends PromiseLike<infer Result>
    ? undefined extends Result
      ? unknown
      : { readonly onBusy: "a method with onBusy: 'skip' has to allow undefined as its result" }
    : unknown;

type MayAnswer<Answer, Method extends LockableMethod, Refusal> = [Answer] extends [AnswerOf<Method>]
  ? unknown
  : unknown extends Answer
    ? unknown
    : Refusal;

/**
 * An instance, whose class `Self` names where a function asks for `this`. Only classes have a prototype, so static
 * methods do not compile.
 */
type Prototype<Self> = Self & object & { readonly prototype?: never };

/** The decorator that `@DistributedLock` makes of its options. */
export type LockDecorator<Self, Options extends Given> = <Method extends LockableMethod>(
  target: Prototype<Self>,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<Method> & Fits<Options, Method>,
) => void;
