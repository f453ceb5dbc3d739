/** What is read of an argument. */
interface Candidate {
  readonly queryRunner?: { readonly isTransactionActive?: unknown } | null;
  readonly isTransactionActive?: unknown;
  readonly isTransaction?: unknown;
  readonly rollback?: unknown;
  readonly nestedIndex?: unknown;
  isInTransaction?(): unknown;
  getTransactionStatus?(): unknown;
}

/** How each library shows a transaction that is open. */
const SIGNS: readonly (readonly [name: string, isOpen: (value: Candidate) => boolean])[] = [
  ['an EntityManager of TypeORM', ({ queryRunner }) => queryRunner?.isTransactionActive === true],
  ['a QueryRunner of TypeORM', ({ isTransactionActive }) => isTransactionActive === true],
  ['a transaction of knex or Kysely', ({ isTransaction }) => isTransaction === true],
  ['an EntityManager of MikroORM', (value) => typeof value.isInTransaction === 'function' && value.isInTransaction() === true],
  ['a transaction of drizzle', ({ nestedIndex, rollback }) => typeof nestedIndex === 'number' && typeof rollback === 'function'],
  ['a client of pg', (value) => typeof value.getTransactionStatus === 'function' && value.getTransactionStatus() === 'T'],
];

/** Which of the arguments of a call is a transaction that is open, in words; undefined where none is known to be. */
export function openTransaction(args: readonly unknown[]): string | undefined {
  for (const value of args) {
    const name = isInstance(value) ? SIGNS.find(([, isOpen]) => isSo(isOpen, value))?.[0] : undefined;
    if (name !== undefined) {
      return name;
    }
  }
  return undefined;
}

/** Data that came with a request is none. */
function isInstance(value: unknown): value is Candidate {
  if (typeof value === 'function') {
    return true;
  }
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype;
}

/** The arguments are the user's: whatever they do when they are read, the call goes on. */
function isSo(isOpen: (value: Candidate) => boolean, value: Candidate): boolean {
  try {
    return isOpen(value);
  } catch {
    return false;
  }
}
