import { randomUUID } from 'node:crypto';
import { readTicket, writeTicket } from '../../lib/core/leases/ticket';
import type { Lock } from '../../lib/core/words/lock';
import type { LockService } from '../../lib/nest/lock.service';
import { makeLocks } from '../support/make-locks';
import { until } from '../support/until';
import { STORES, type StoreKind, type StorePlace } from '../support/stores';

/** The attacks that a ticket of each of these stores is proof against. */
export function ticketSuite(stores: readonly string[]): void {
  describe.each(stores)('a ticket of the %s store', ticketsOf);
}

function ticketsOf(store: string): void {
  const { start } = STORES[store] as StoreKind;
  let place: StorePlace;
  let locks: LockService;
  let elsewhere: LockService;
  beforeAll(async () => {
    place = await start();
    // Longer than all that is tried with a ticket.
    locks = makeLocks(await place.connect(), { ttl: 60_000 });
    elsewhere = makeLocks(await place.connect(), { ttl: 60_000 });
  });
  afterAll(() => place.stop());

  /** The code of the error with which the ticket is refused; `entered` where it is not. */
  async function enter(key: string, ticket: unknown): Promise<string> {
    const ask = (): Promise<string> =>
      elsewhere.withLock(key, { ticket: ticket as string, wait: 0 }, () => 'entered').catch(({ code }: { code: string }) => code);
    let answer = '';
    // A server that stood still said nothing of the ticket. Without a connection, a call that is repeated at once keeps
    // the connection from being made.
    await until('an answer', async () => (answer = await ask()) !== 'LOCK_STORE');
    return answer;
  }

  test('that was changed in any character is refused, and so is one with a character more or less', async () => {
    // Of each length that a text in base64 may have at its end.
    const keys = ['k', 'k1', 'k12'];
    const all = await Promise.all(keys.map((key) => locks.acquire(key)));
    for (const [which, lock] of all.entries()) {
      const ticket = lock.makeTicket();
      const key = keys[which] as string;
      const changed: string[] = [];
      for (let at = 0; at < ticket.length; at++) {
        changed.push(ticket.slice(0, at) + (ticket[at] === 'A' ? 'B' : 'A') + ticket.slice(at + 1));
      }
      for (const more of 'AQg0JK_-=+/ \n.') {
        changed.push(ticket + more, more + ticket, ticket.slice(0, 9) + more + ticket.slice(9));
      }
      changed.push(ticket.slice(0, -1), ticket.slice(1));
      // As many at a time as a few connections answer soon.
      while (changed.length > 0) {
        const answers = await Promise.all(changed.splice(0, 20).map(async (text) => [text, await enter(key, text)] as const));
        expect(answers.filter(([, answer]) => !/^LOCK_(LOST|CONFIGURATION)$/.test(answer))).toEqual([]);
      }
      expect(await enter(key, ticket)).toBe('entered');
    }
    const [held, ...others] = all as [Lock, ...Lock[]];
    await Promise.all(others.map((other) => other.release()));
    // A guest whose reply was lost leaves again.
    await until('that nobody else is inside', async () => (await locks.operations.inspect('k'))?.holds === 1);
    expect(await locks.operations.inspect('k')).toMatchObject({ fence: held.fence });
    await held.release();
  });

  test('enters no other key, though its text says so', async () => {
    const [mine, other] = [await locks.acquire('mine'), await elsewhere.acquire('other')];
    const { secret, fence } = readTicket(mine.makeTicket(), 'mine');
    for (const key of ['other', 'free']) {
      for (const number of [fence, other.fence]) {
        expect(await enter(key, writeTicket([{ store: 'default', key, secret, fence: number, storedFence: number }]))).toBe('LOCK_LOST');
      }
    }
    expect(await locks.operations.inspect('other')).toMatchObject({ holds: 1 });
    expect(await locks.operations.inspect('free')).toBeNull();
    await Promise.all([mine.release(), other.release()]);
  });

  test('cannot be made up by who knows the key and the fence, which are no secrets', async () => {
    const held = await locks.acquire('k');
    for (const secret of ['', 'false', 'nil', 'k', 'owner', String(held.fence), randomUUID()]) {
      expect(await enter('k', writeTicket([{ store: 'default', key: 'k', secret, fence: held.fence, storedFence: held.fence }]))).toBe(
        'LOCK_LOST',
      );
    }
    expect(await locks.operations.inspect('k')).toMatchObject({ holds: 1 });
    await held.release();
  });

  test.each([[''], ['null'], [null], [42], [{}], [['k']]])(
    'that is %p is refused, and the call does not go on without one',
    async (ticket) => {
      expect(await enter('k', ticket)).toBe('LOCK_CONFIGURATION');
    },
  );

  test('is of no use to who has another one of the same key from before', async () => {
    const before = await locks.withLock('k', (lock) => lock.makeTicket());
    const held = await locks.acquire('k');
    expect(await enter('k', before)).toBe('LOCK_LOST');
    // Nor with the fence of now.
    expect(await enter('k', writeTicket([{ ...readTicket(before, 'k'), fence: held.fence, storedFence: held.fence }]))).toBe('LOCK_LOST');
    expect(await enter('k', held.makeTicket())).toBe('entered');
    await held.release();
  });
}
