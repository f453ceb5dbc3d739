import type { ModulesContainer } from '@nestjs/core';

/** What is read of an argument or a provider. */
interface Candidate {
  readonly queryRunner?: { readonly isTransactionActive?: unknown } | null;
  readonly manager?: Candidate;
  readonly isTransactionActive?: unknown;
  readonly isTransaction?: unknown;
  readonly rollback?: unknown;
  readonly nestedIndex?: unknown;
  readonly $connect?: unknown;
  readonly id?: unknown;
  readonly connection?: { readonly uuid?: unknown };
  readonly constructor: { readonly _cls?: { get(name: string): unknown } };
}

/** How each library shows a transaction that is open, by something that has a property of that name. */
const SIGNS: readonly (readonly [name: string, property: string, isOpen: (value: Candidate) => boolean])[] = [
  ['an EntityManager of TypeORM', 'queryRunner', ({ queryRunner }) => queryRunner?.isTransactionActive === true],
  ['a QueryRunner of TypeORM', 'startTransaction', ({ isTransactionActive }) => isTransactionActive === true],
  ['the DataSource of typeorm-transactional', 'createQueryRunner', ({ manager }) => manager?.queryRunner?.isTransactionActive === true],
  ['the TransactionHost of nestjs-cls', 'withTransaction', (value) => ask(value, 'isTransactionActive') === true],
  ['a transaction of knex or Kysely', 'isTransaction', ({ isTransaction }) => isTransaction === true],
  ['an EntityManager of MikroORM', 'isInTransaction', (value) => ask(value, 'isInTransaction') === true],
  [
    'a transaction of drizzle',
    'nestedIndex',
    ({ nestedIndex, rollback }) => typeof nestedIndex === 'number' && typeof rollback === 'function',
  ],
  ['a client of pg', 'getTransactionStatus', (value) => ask(value, 'getTransactionStatus') === 'T'],
  ['a transaction client of Prisma', '$executeRaw', ({ $connect }) => $connect === undefined],
  ['a transaction of Sequelize', 'savepoints', ({ id, connection }) => connection?.uuid !== undefined && connection.uuid === id],
  ['the CLS namespace of Sequelize', 'modelManager', ({ constructor }) => Boolean(constructor._cls?.get('transaction'))],
];

/** Which of the values is a transaction that is open, in words; undefined where none is known to be. */
export function openTransaction(values: readonly unknown[]): string | undefined {
  for (const value of values) {
    const name = nameOf(value) ?? nameOf(optionOf(value));
    if (name !== undefined) {
      return name;
    }
  }
  return undefined;
}

/** The providers that show whether the running code is inside a transaction, of those that are made. */
export function transactionProviders(modules: ModulesContainer): readonly unknown[] {
  const providers = [...modules.values()].flatMap((module) => [...module.providers.values()]);
  const made = providers.filter((provider) => provider.isDependencyTreeStatic()).map(({ instance }): unknown => instance);
  return [...new Set(made)].filter((value) => isObject(value) && SIGNS.some(([, property]) => property in value));
}

function nameOf(value: unknown): string | undefined {
  return isObject(value) ? SIGNS.find((sign) => shows(sign, value))?.[0] : undefined;
}

/** What options such as those of Sequelize name as their transaction. */
function optionOf(value: unknown): unknown {
  return isObject(value) && isPlain(value) ? Object.getOwnPropertyDescriptor(value, 'transaction')?.value : undefined;
}

function isObject(value: unknown): value is object {
  return typeof value === 'function' || (typeof value === 'object' && value !== null);
}

function isPlain(value: object): boolean {
  return [Object.prototype, Array.prototype, null].includes(Object.getPrototypeOf(value) as object | null);
}

/** The values are the user's: whatever they do when they are read, the call goes on. Data that came with a request shows nothing. */
function shows([, property, isOpen]: (typeof SIGNS)[number], value: object): boolean {
  try {
    const isData = isPlain(value) && typeof (value as Record<string, unknown>)[property] !== 'function';
    return property in value && !isData && isOpen(value as Candidate);
  } catch {
    return false;
  }
}

function ask(value: object, method: string): unknown {
  const answer = (value as Record<string, unknown>)[method];
  return typeof answer === 'function' ? (Reflect.apply(answer, value, []) as unknown) : undefined;
}
