import { setTimeout as sleep } from 'node:timers/promises';
import type { LockService } from '../../lib/nest/lock.service.js';
import { MemoryLockStore } from '../../lib/memory/memory-lock-store.js';
import { makeLocks } from '../support/make-locks.js';
import type { Account, Run } from './accounts.js';
import { LEFT_BEHIND } from './left-behind.js';
import { transactions } from './recipes.js';

export const CREDITS = 16;

/** The behaviour of the locks of a library's transactions. */
export interface Findings {
  /** The amount after `CREDITS` credits of 1, with the option and without it. */
  readonly followed: number;
  readonly unfollowed: number;
  /** The amount with the option, where each transaction begins in a context that another one left behind. */
  readonly afterOthers: Readonly<Record<string, number>>;
  /** Whether the lock was taken before a rollback, and whether its write is there after that. */
  readonly rollback: { readonly isTaken: boolean; readonly amount: number };
  /** Whether a second call of the transaction had the same fence. */
  readonly isEntered: boolean;
  /** Whether the lock of a savepoint was taken after it; and the amount after the commit. */
  readonly savepoint: { readonly isTaken: boolean; readonly amount: number };
  /** Whether a lock was left. */
  readonly isLeft: boolean;
}

/** Two processes that use one store. */
function start(isFollowed: boolean): readonly [LockService, LockService] {
  const store = new MemoryLockStore();
  const settings = isFollowed ? { transaction: transactions.current, wait: 30_000 } : { wait: 30_000 };
  return [makeLocks(store, settings), makeLocks(store, settings)];
}

async function amountIn(run: Run): Promise<number> {
  const found = JSON.stringify(await run('SELECT amount FROM balance WHERE id = 1'));
  return Number(/"amount":(\d+)/.exec(found)?.[1]);
}

function set(account: Account, amount: number): Promise<void> {
  return account.transaction(async (run) => void (await run(`UPDATE balance SET amount = ${amount}`)));
}

async function read(account: Account): Promise<number> {
  let amount = NaN;
  await account.transaction(async (run) => {
    amount = await amountIn(run);
  });
  return amount;
}

type Begin = (credit: () => Promise<void>) => Promise<void>;

/** Each a read and then a write of what was read, under the lock; the commit comes later. */
async function creditAll(account: Account, isFollowed: boolean, begin: Begin = (credit) => credit()): Promise<number> {
  const processes = start(isFollowed);
  await set(account, 0);
  const credit = (locks: LockService): Promise<void> =>
    account.transaction(async (run) => {
      await locks.withLock('balance:1', async () => {
        const before = await amountIn(run);
        await run(`UPDATE balance SET amount = ${before + 1} WHERE id = 1`);
      });
      await sleep(5);
    });
  await Promise.all(Array.from({ length: CREDITS }, (_, at) => begin(() => credit(processes[at % 2] as LockService))));
  await Promise.all(processes.map((locks) => locks.shutdown()));
  return read(account);
}

/** Runs the transactions of a library around locked calls. */
export async function check(account: Account): Promise<Findings> {
  const followed = await creditAll(account, true);
  const unfollowed = await creditAll(account, false);
  const afterOthers: Record<string, number> = {};
  for (const [way, leave] of Object.entries(LEFT_BEHIND)) {
    afterOthers[way] = await creditAll(account, true, async (credit) => {
      let later!: () => Promise<void>;
      await account.transaction(async () => {
        later = leave(credit);
      });
      await later();
    });
  }
  const [locks, others] = start(true);
  const isTaken = async (): Promise<boolean> => (await others.operations.inspect('balance:1')) !== null;
  const write = (run: Run, amount: number): Promise<number> =>
    locks.withLock('balance:1', { wait: 5_000 }, async ({ fence }) => {
      await run(`UPDATE balance SET amount = ${amount}`);
      return fence;
    });
  const after = (): Promise<number> => others.withLock('balance:1', () => read(account));

  await set(account, 0);
  const taken: boolean[] = [];
  const rolledBack = new Error('rolled back');
  const fails = account.transaction(async (run) => {
    await write(run, 7);
    taken.push(await isTaken());
    throw rolledBack;
  });
  await fails.catch((error: unknown) => {
    if (error !== rolledBack) {
      throw error;
    }
  });
  const amountAfterRollback = await after();

  const fences: number[] = [];
  await account.transaction(async (run) => {
    fences.push(await write(run, 1), await write(run, 2));
  });

  await account.nested(
    async (run) => void (await write(run, 8)),
    async (run) => {
      taken.push(await isTaken());
      await write(run, 9);
    },
  );
  const amountAfterSavepoint = await after();
  const isLeft = await isTaken();
  await Promise.all([locks.shutdown(), others.shutdown()]);
  return {
    followed,
    unfollowed,
    afterOthers,
    rollback: { isTaken: taken[0] === true, amount: amountAfterRollback },
    isEntered: fences[0] === fences[1],
    savepoint: { isTaken: taken[1] === true, amount: amountAfterSavepoint },
    isLeft,
  };
}
