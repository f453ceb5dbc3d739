import type { ModulesContainer } from '@nestjs/core';

/** The properties that are read of an argument or a provider. */
interface Suspect {
  readonly queryRunner?: { readonly isTransactionActive?: unknown } | null;
  readonly manager?: Suspect;
  readonly isTransactionActive?: unknown;
  readonly isTransaction?: unknown;
  readonly rollback?: unknown;
  readonly nestedIndex?: unknown;
  readonly $connect?: unknown;
  readonly id?: unknown;
  readonly connection?: { readonly uuid?: unknown };
}

/**
 * How a library shows a transaction that is open, by a value that has all these properties. A method of the value is
 * called only where other methods of its library stand beside it: a user's own method of the same name may do anything.
 */
type Sign = readonly [name: string, properties: readonly [string, ...string[]], isOpen: (value: Suspect) => boolean];

/**
 * Values that code is given. Another request may have the same value: only an argument shows that the transaction is
 * open around this call.
 */
const GIVEN: readonly Sign[] = [
  ['an EntityManager of TypeORM', ['queryRunner'], ({ queryRunner }) => queryRunner?.isTransactionActive === true],
  ['a QueryRunner of TypeORM', ['startTransaction'], ({ isTransactionActive }) => isTransactionActive === true],
  ['a transaction of knex or Kysely', ['isTransaction', 'transaction', 'schema'], ({ isTransaction }) => isTransaction === true],
  ['a transaction of drizzle', ['nestedIndex'], ({ nestedIndex, rollback }) => nestedIndex !== undefined && typeof rollback === 'function'],
  ['a client of pg', ['getTransactionStatus', 'getTypeParser', 'query'], (value) => ask(value, 'getTransactionStatus') === 'T'],
  ['a transaction client of Prisma', ['$executeRaw'], ({ $connect }) => $connect === undefined],
  ['a transaction of Sequelize', ['savepoints'], ({ id, connection }) => connection?.uuid !== undefined && connection.uuid === id],
];

/** Objects that know the transaction around the running code, by its async context. */
const IN_CONTEXT: readonly Sign[] = [
  [
    'the TransactionHost of nestjs-cls',
    ['withTransaction', 'withoutTransaction', 'tx'],
    (value) => ask(value, 'isTransactionActive') === true,
  ],
  ['the DataSource of typeorm-transactional', ['createQueryRunner'], ({ manager }) => manager?.queryRunner?.isTransactionActive === true],
  ['an EntityManager of MikroORM', ['isInTransaction', 'getUnitOfWork', 'fork'], (value) => ask(value, 'isInTransaction') === true],
  ['the CLS of Sequelize', ['modelManager'], ({ constructor }) => Boolean(ask(Reflect.get(constructor, '_cls'), 'get', 'transaction'))],
];

/** Which of the arguments of a call is a transaction that is open, in words; undefined where none is known to be. */
export function givenTransaction(args: readonly unknown[]): string | undefined {
  return nameOf(args, [...GIVEN, ...IN_CONTEXT]) ?? nameOf(args.map(optionOf), GIVEN);
}

/** Which of `transactionProviders` says that the running code is inside a transaction. */
export function transactionInContext(providers: readonly unknown[]): string | undefined {
  return nameOf(providers, IN_CONTEXT);
}

/** The providers that know whether the running code is inside a transaction, of those that are made. */
export function transactionProviders(modules: ModulesContainer): readonly unknown[] {
  const providers = Array.from(modules.values(), (module) => Array.from(module.providers.values())).flat();
  const made = providers.filter((provider) => provider.isDependencyTreeStatic()).map(({ instance }): unknown => instance);
  return [...new Set(made)].filter((value) => isObject(value) && IN_CONTEXT.some((sign) => isSo(() => hasAll(sign, value))));
}

function nameOf(values: readonly unknown[], signs: readonly Sign[]): string | undefined {
  return signs.find((sign) => values.some((value) => isObject(value) && isSo(() => shows(sign, value))))?.[0];
}

/** The value that options such as those of Sequelize name as their transaction. */
function optionOf(value: unknown): unknown {
  return isObject(value) && isSo(() => isPlain(value)) ? Object.getOwnPropertyDescriptor(value, 'transaction')?.value : undefined;
}

/** Data that came with a request shows nothing. */
function shows(sign: Sign, value: object): boolean {
  const [, [property], isOpen] = sign;
  const isData = isPlain(value) && typeof Reflect.get(value, property) !== 'function';
  return hasAll(sign, value) && !isData && isOpen(value);
}

function hasAll([, properties]: Sign, value: object): boolean {
  return properties.every((property) => property in value);
}

/** The values are the user's: whatever they do when they are read, the call goes on. */
function isSo(isTrue: () => boolean): boolean {
  try {
    return isTrue();
  } catch {
    return false;
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'function' || (typeof value === 'object' && value !== null);
}

function isPlain(value: object): boolean {
  return [Object.prototype, Array.prototype, null].includes(Object.getPrototypeOf(value) as object | null);
}

function ask(value: unknown, name: string, ...args: unknown[]): unknown {
  const method: unknown = Reflect.get(value as object, name);
  const answer: unknown = typeof method === 'function' ? Reflect.apply(method, value, args) : undefined;
  if (answer instanceof Promise) {
    // The value is no object of the library after all: nobody else has this promise.
    answer.catch(() => undefined);
  }
  return answer;
}
