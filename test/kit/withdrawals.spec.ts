import { jest } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import { LockConfigurationError, LockStoreError } from '../../lib/core/words/errors';
import { Withdrawals } from '../../lib/kit/withdrawals';
import { playTime, sleep } from '../support/virtual-time';

playTime();

const LEASE_MS = 5_000;
/** As many are repeated at the same time. */
const MOST = 1_000;

const noAnswer = (): LockStoreError => new LockStoreError('no reply', 'k', { unknown: true });

let withdrawals: Withdrawals;
let startedAt: number;
/** When the command was sent, in ms after the first time. */
let sentAt: number[];

beforeEach(() => {
  [withdrawals, startedAt, sentAt] = [new Withdrawals(), performance.now(), []];
});

/** A command that fails so many times before it is answered. */
const commandThat =
  (fails: number, error: () => Error = noAnswer) =>
  async (): Promise<void> => {
    sentAt.push(performance.now() - startedAt);
    if (sentAt.length <= fails) {
      throw error();
    }
  };

describe('what is withdrawn', () => {
  test('is sent at once, and once where the server answers', async () => {
    withdrawals.add(commandThat(0), LEASE_MS);
    expect(sentAt).toEqual([0]);
    await sleep(2 * LEASE_MS);
    expect(sentAt).toEqual([0]);
  });

  test('is sent until the server answers', async () => {
    withdrawals.add(commandThat(3), LEASE_MS);
    await sleep(2 * LEASE_MS);
    expect(sentAt).toEqual([0, 500, 1_000, 1_500]);
  });

  test('is sent every tenth of the lease that it belongs to, and no more once that is over', async () => {
    withdrawals.add(commandThat(Infinity), LEASE_MS);
    await sleep(2 * LEASE_MS);
    expect(sentAt).toEqual([0, 500, 1_000, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000, 4_500]);
  });

  test('from a long lease is sent each second', async () => {
    withdrawals.add(commandThat(Infinity), 60_000);
    await sleep(120_000);
    expect(sentAt).toEqual(Array.from({ length: 60 }, (_, second) => second * 1_000));
  });

  test('is sent again after each failure, for a lease after the first one', async () => {
    const slow = async (): Promise<void> => {
      sentAt.push(performance.now() - startedAt);
      await sleep(1_000);
      throw noAnswer();
    };
    withdrawals.add(slow, LEASE_MS);
    await sleep(2 * LEASE_MS);
    expect(sentAt).toEqual([0, 1_500, 3_000, 4_500]);
  });

  test('by a command that failed already is sent again after a pause', async () => {
    withdrawals.repeat(commandThat(0), LEASE_MS, noAnswer());
    expect(sentAt).toEqual([]);
    await sleep(LEASE_MS);
    expect(sentAt).toEqual([500]);
  });

  test('is sent no more where the server answered with an error', async () => {
    const refused = (): Error => new LockConfigurationError('refused', 'k');
    withdrawals.add(commandThat(Infinity, refused), LEASE_MS);
    withdrawals.repeat(commandThat(0), LEASE_MS, refused());
    await sleep(2 * LEASE_MS);
    expect(sentAt).toEqual([0]);
  });

  test('is sent no more where the server answered a repetition with an error', async () => {
    withdrawals.add(
      commandThat(Infinity, () => (sentAt.length < 3 ? noAnswer() : new LockConfigurationError('refused', 'k'))),
      LEASE_MS,
    );
    await sleep(2 * LEASE_MS);
    expect(sentAt).toEqual([0, 500, 1_000]);
  });

  test('is not sent in the context of the call that it cleans up after', async () => {
    const calls = new AsyncLocalStorage<string>();
    const contexts: unknown[] = [];
    const command = async (): Promise<void> => {
      contexts.push(calls.getStore());
      throw noAnswer();
    };
    calls.run('the call', () => withdrawals.repeat(command, LEASE_MS, noAnswer()));
    await sleep(1_200);
    expect(contexts).toEqual([undefined, undefined]);
  });
});

describe('a store that closes', () => {
  test('repeats no command that fails from then on', async () => {
    const command = commandThat(Infinity);
    const closing = async (): Promise<void> => {
      if (sentAt.length === 2) {
        withdrawals.close();
      }
      return command();
    };
    withdrawals.add(closing, LEASE_MS);
    await sleep(2 * LEASE_MS);
    expect(sentAt).toEqual([0, 500, 1_000]);
  });

  test('sends no command again whose pause ends afterwards', async () => {
    withdrawals.repeat(commandThat(Infinity), LEASE_MS, noAnswer());
    await sleep(100);
    withdrawals.close();
    await sleep(2 * LEASE_MS);
    expect(sentAt).toEqual([]);
  });

  test('sends what it withdraws afterwards once', async () => {
    withdrawals.close();
    withdrawals.add(commandThat(Infinity), LEASE_MS);
    await sleep(2 * LEASE_MS);
    expect(sentAt).toEqual([0]);
  });
});

describe('where a server is away', () => {
  // A thousand timers that end one by one take seconds.
  playTime({ passes: false });

  const repeatMost = (): void => {
    for (let count = 0; count < MOST; count++) {
      withdrawals.repeat(commandThat(0), LEASE_MS, noAnswer());
    }
  };
  const pauseEnds = async (): Promise<void> => {
    jest.advanceTimersByTime(LEASE_MS / 10);
    await new Promise((resolve) => setImmediate(resolve));
  };

  test('a thousand withdrawals are repeated at the same time, and the rest end with their leases', async () => {
    repeatMost();
    withdrawals.repeat(commandThat(0), LEASE_MS, noAnswer());
    await pauseEnds();
    expect(sentAt).toHaveLength(MOST);
  });

  test('others are repeated once those are answered', async () => {
    repeatMost();
    await pauseEnds();
    withdrawals.repeat(commandThat(0), LEASE_MS, noAnswer());
    await pauseEnds();
    expect(sentAt).toHaveLength(MOST + 1);
  });
});
