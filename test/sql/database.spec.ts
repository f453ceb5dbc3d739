import { setImmediate as turn } from 'node:timers/promises';
import { LockStoreError } from '../../lib/core/words/errors';
import { Database, type DatabaseOptions, type RowNames } from '../../lib/sql/database';
import type { Dialect } from '../../lib/sql/dialect';
import type { LockOperations } from '../../lib/sql/lock-operations';

/** How a check of the server ends. */
interface Check {
  pass(): void;
  fail(error: Error): void;
}

const AWAY = new LockStoreError('It is away.', '', { unknown: false });
const NONE = {} as LockOperations;
const OPTIONS = { readOnly: true, warn: () => undefined, keys: { numberRow: 'number' } } as unknown as DatabaseOptions<RowNames>;
/** Gives no connection. */
const NO_SERVER = {
  connect: (connected: (error: Error) => void) => connected(new Error('no connection')),
  whyNone: () => 'no connection',
} as unknown as Dialect;

/** A database whose check the test ends. */
class CheckedByHand extends Database {
  readonly hearsTurns = undefined;
  readonly checks: Check[] = [];
  notifiers = 0;

  ensureSchema = (): Promise<void> => Promise.resolve();
  heldRows = (): Promise<[]> => Promise.resolve([]);
  protected askState = (): Promise<never> => Promise.reject(AWAY);
  protected forgetting = (): string => '';
  protected tidySome = (): Promise<boolean> => Promise.resolve(false);
  protected newNotifier = (): undefined => void this.notifiers++;

  protected checkServer(): Promise<void> {
    return new Promise((pass, fail) => this.checks.push({ pass, fail }));
  }

  /** Opens it while its server is away. */
  async openAway(): Promise<void> {
    const opened = this.open(OPTIONS);
    this.checks.at(-1)?.fail(AWAY);
    await opened;
  }

  /** Runs a statement, and resolves to why that failed. */
  run(): Promise<unknown> {
    return this.calls.sendPlain(() => ({ sql: 'SELECT 1' }), { key: 'k', limitMs: 60_000 }).catch((error: unknown) => error);
  }
}

let database: CheckedByHand;

beforeEach(() => {
  database = new CheckedByHand(NO_SERVER, NONE);
});

test('a database that was away is checked once for all operations that wait for it, and by none after it has passed', async () => {
  await database.openAway();
  const waiting = [database.run(), database.run()];
  await turn();
  expect(database.checks).toHaveLength(2);
  database.checks[1]?.pass();
  await Promise.all(waiting);
  await database.run();
  expect(database.checks).toHaveLength(2);
});

test('a check that passes after the store was opened again, with other options, does not pass for that one', async () => {
  await database.openAway();
  const waiting = database.run();
  await turn();
  database.close();
  await database.openAway();
  database.checks[1]?.pass();
  await waiting;
  const next = database.run();
  await turn();
  expect(database.checks).toHaveLength(4);
  database.checks[3]?.pass();
  await next;
  await database.run();
  expect(database.checks).toHaveLength(4);
});

test('a database that is closed while it is opened listens to nothing, and once where it is opened again meanwhile', async () => {
  const first = database.open(OPTIONS);
  database.close();
  database.checks[0]?.pass();
  await first;
  expect(database.notifiers).toBe(0);
  const [second, third] = [database.open(OPTIONS), database.open(OPTIONS)];
  database.checks.forEach(({ pass }) => pass());
  await Promise.all([second, third]);
  expect(database.notifiers).toBe(1);
});
