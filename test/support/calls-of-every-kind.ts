import type { LockService } from '../../lib/nest/lock.service';

const AT_ONCE = 50;

/**
 * Makes locked calls of every kind, eight in each round, for a multiple of fifty rounds: on new keys and on used ones,
 * of several keys, nested, by a handle, with a ticket, from another process, and without a wait.
 */
export async function callsOfEveryKind(locks: LockService, other: LockService, rounds: number): Promise<void> {
  const ask = async (round: number): Promise<void> => {
    const key = `k${round % AT_ONCE}`;
    await locks.withLock(`fresh ${round}`, () => undefined);
    await locks.withLock([key, `${key} too`], () => locks.withLock(key, () => undefined));
    await other.withLock(key, () => undefined);
    await (await locks.acquire(`handle ${key}`)).release();
    await locks.withLock(`ticket ${key}`, (lock) => other.withLock(`ticket ${key}`, { ticket: lock.makeTicket() }, () => undefined));
    await locks.withLock(key, { wait: 0, onUnavailable: 'throw' }, () => undefined).catch(() => undefined);
  };
  for (let round = 0; round < rounds; round += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => ask(round + at)));
  }
}
