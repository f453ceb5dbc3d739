import { AsyncResource } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { firstValueFrom, from, Observable } from 'rxjs';
import { outsideLocks } from '../../lib/core/calls/call-tree';
import type { LockError, LockNotAcquiredError } from '../../lib/core/words/errors';
import { readTicket, writeTicket } from '../../lib/core/leases/ticket';
import { assertLocked, currentLock } from '../../lib/nest/current-lock';
import { makeTickets, enterTickets } from '../../lib/nest/current-tickets';
import { makeLocks } from '../support/make-locks';
import { saying } from '../support/saying';
import { connectTo } from '../support/sends-again';
import { sideBySide } from '../support/side-by-side';
import type { StorePlace } from '../support/stores';
import { until } from '../support/until';

/** Calls wait for as long as a busy machine needs. */
const SETTINGS = { wait: 60_000 };
const AT_ONCE = { wait: 0 };
const BUSY = expect.objectContaining({ code: 'LOCK_NOT_ACQUIRED' }) as Error;
const LOST = expect.objectContaining({ code: 'LOCK_LOST' }) as Error;

/** Tickets that travel from one process to another, on whichever store. */
export function travelSuite(place: () => StorePlace): void {
  const beside = sideBySide({
    prepare: async () => ({
      here: makeLocks(await connectTo(place()), SETTINGS),
      there: makeLocks(await connectTo(place()), SETTINGS),
      key: `key ${randomUUID()}`,
    }),
    atOnce: 12,
  });

  /** Runs code as another process that was called with these tickets. */
  function elsewhere<T>(text: string | undefined, fn: () => T): T {
    return outsideLocks(() => enterTickets(text, fn));
  }

  beside(
    'a locked call that comes with tickets enters the lock, with its fence, and calls inside re-enter',
    async ({ here, there, key }) => {
      await here.withLock(key, async (lock) => {
        await elsewhere(makeTickets(), () =>
          there.withLock(key, async (joined) => {
            expect(joined.fence).toBe(lock.fence);
            expect(await here.operations.inspect(key)).toMatchObject({ holds: 2, fence: (await there.operations.inspect(key))?.fence });
            await there.withLock(key, (nested) => expect(nested.fence).toBe(lock.fence));
            expect(await here.operations.inspect(key)).toMatchObject({ holds: 2 });
          }),
        );
        expect(await here.operations.inspect(key)).toMatchObject({ holds: 1 });
      });
      expect(await here.operations.inspect(key)).toBeNull();
    },
  );

  beside('of a caller and a guest, inspect names one that is there', async ({ here, there, key }) => {
    // Renewed several times, also where a slow database and a busy machine hold renewals up for seconds.
    const ttl = 5_000;
    const named = (by: string) => async (): Promise<boolean> => (await here.operations.inspect(key))?.by.endsWith(by) === true;
    let leave!: () => void;
    const left = new Promise<void>((resolve) => (leave = resolve));
    let guest!: Promise<void>;
    await here.withLock(key, { ttl, by: 'Caller.method' }, async () => {
      await elsewhere(makeTickets(), () => there.withLock(key, { ttl, by: 'Guest.first' }, () => until('a renewal', named('first'))));
      await until('a renewal after that', named('Caller.method'));
      const joined = elsewhere(makeTickets(), () => there.acquire(key, { ttl, by: 'Guest.second' }));
      guest = (await joined).run(() => left).finally(async () => (await joined).release());
    });
    await until('a renewal after its caller', named('second'));
    leave();
    await guest;
    expect(await here.operations.inspect(key)).toBeNull();
  });

  beside('without its tickets it waits, and its caller with it', async ({ here, there, key }) => {
    await here.withLock(key, () => expect(elsewhere(undefined, () => there.withLock(key, { wait: 50 }, () => 1))).rejects.toThrow(BUSY));
  });

  beside('acquire() and tryAcquire() enter too', async ({ here, there, key }) => {
    await here.withLock(key, (lock) =>
      elsewhere(makeTickets(), async () => {
        const handles = [await there.acquire(key)];
        await handles[0]?.run(async () => handles.push((await there.tryAcquire(key)) as (typeof handles)[0]));
        expect(handles.map(({ fence }) => fence)).toEqual([lock.fence, lock.fence]);
        await Promise.all(handles.map((handle) => handle.release()));
      }),
    );
    expect(await here.operations.inspect(key)).toBeNull();
  });

  beside('a call on several keys enters those of the tickets, and acquires the others', async ({ here, there, key }) => {
    const [other, third] = [`${key} other`, `${key} third`];
    await here.withLock([key, other], async (lock) => {
      const text = makeTickets();
      await elsewhere(text, () =>
        there.withLock([third, other, key], async (joined) => {
          expect([key, other].map((one) => joined.fenceOf(one))).toEqual([key, other].map((one) => lock.fenceOf(one)));
          await expect(here.tryAcquire(third)).resolves.toBeNull();
        }),
      );
    });
    for (const one of [key, other, third]) {
      expect(await here.operations.inspect(one)).toBeNull();
    }
  });

  beside('a call on another key waits as always', async ({ here, there, key }) => {
    const other = await here.acquire(`${key} other`);
    await here.withLock(key, () =>
      elsewhere(makeTickets(), () => expect(there.withLock(`${key} other`, AT_ONCE, () => 1)).rejects.toThrow(BUSY)),
    );
    await other.release();
  });

  beside('the text has the locks of all enclosing calls, and is undefined outside of any', async ({ here, there, key }) => {
    expect(makeTickets()).toBeUndefined();
    const [inner, outer] = [`${key} inner`, key];
    await here.withLock(outer, () =>
      here.withLock(inner, async () => {
        await elsewhere(makeTickets(), () => there.withLock(outer, () => there.withLock(inner, () => 1)));
        expect(outsideLocks(makeTickets)).toBeUndefined();
      }),
    );
    expect(makeTickets()).toBeUndefined();
  });

  beside('tickets go on to a third process, whether the second has entered the lock or not', async ({ here, there, key }) => {
    const third = makeLocks(await connectTo(place()));
    await here.withLock(key, (lock) =>
      elsewhere(makeTickets(), async () => {
        const enter = (): Promise<number> => elsewhere(makeTickets(), () => third.withLock(key, ({ fence }) => fence));
        expect(await enter()).toBe(lock.fence);
        expect(await there.withLock(key, enter)).toBe(lock.fence);
      }),
    );
  });

  beside('the text and lock.makeTicket() are one: each goes where the other does', async ({ here, there, key }) => {
    await here.withLock(key, async (lock) => {
      const ticket = makeTickets();
      expect(await outsideLocks(() => there.withLock(key, { ticket }, () => 'in'))).toBe('in');
      expect(await elsewhere(lock.makeTicket(), () => there.withLock(key, ({ fence }) => fence))).toBe(lock.fence);
    });
  });

  beside('calls that run in parallel inside take turns, as children of one lock do', async ({ here, there, key }) => {
    const { section, most } = countedSection();
    await here.withLock(key, () =>
      elsewhere(makeTickets(), async () => {
        await Promise.all(Array.from({ length: 5 }, () => there.withLock(key, section)));
        await there.withLock(key, section);
      }),
    );
    expect(most()).toBe(1);
    expect(await here.operations.inspect(key)).toBeNull();
  });

  beside('of calls inside that may not wait, one runs and the others are busy', async ({ here, there, key }) => {
    const { section, most } = countedSection();
    const ends = await here.withLock(key, () =>
      elsewhere(makeTickets(), () =>
        Promise.all(
          Array.from({ length: 3 }, () => there.withLock(key, { wait: 0 }, section).catch(({ reason }: LockNotAcquiredError) => reason)),
        ),
      ),
    );
    expect(ends).toEqual(['ran', 'busy', 'busy']);
    expect(most()).toBe(1);
  });

  beside('two calls that came with the same tickets run beside each other', async ({ here, there, key }) => {
    let met!: () => void;
    const meeting = new Promise<void>((resolve) => {
      met = resolve;
    });
    await here.withLock(key, () => {
      const text = makeTickets();
      return Promise.all([
        elsewhere(text, () => there.withLock(key, () => meeting)),
        elsewhere(text, () => there.withLock(key, () => met())),
      ]);
    });
  });

  beside('a lock that has ended refuses, and a later call of the same request is refused as well', async ({ here, there, key }) => {
    const text = await here.withLock(key, () => makeTickets());
    await elsewhere(text, async () => {
      const calls = [1, 2, 3].map(() => there.withLock(key, () => 1));
      await Promise.all([...calls, there.withLock(key, () => 1)].map((call) => expect(call).rejects.toThrow(LOST)));
    });
    await here.withLock(key, () => expect(elsewhere(text, () => there.withLock(key, () => 1))).rejects.toThrow(LOST));
    expect(await here.operations.inspect(key)).toBeNull();
  });

  beside('a ticket that was made up is refused, and holds nothing', async ({ here, there, key }) => {
    await here.withLock(key, async (lock) => {
      const forged = writeTicket([{ ...readTicket(lock.makeTicket(), key), secret: randomUUID() }]);
      const error: unknown = await elsewhere(forged, () => there.withLock(key, () => 1)).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'LOCK_LOST', key });
      expect(`${(error as LockError).detail} ${(error as LockError).stack}`).not.toContain(forged.slice(0, 40));
      expect(await here.operations.inspect(key)).toMatchObject({ holds: 1 });
    });
  });

  test('a text that is malformed or too long is refused at once, and is not repeated', () => {
    const never = (): never => {
      throw new Error('it ran');
    };
    const long = writeTicket([{ store: 'default', key: 'k'.repeat(4_000), secret: 's', storedFence: 1, fence: 1 }]);
    const wrong = [
      '',
      'nonsense',
      Buffer.from('[]').toString('base64url'),
      Buffer.from('[["k","s",1,0,7]]').toString('base64url'),
      7,
      null,
    ];
    for (const text of wrong) {
      expect(() => enterTickets(text as string, never)).toThrow(saying(/^The text of the tickets is malformed\. Make sure that/));
    }
    expect(() => enterTickets(long, never)).toThrow(saying(`has ${long.length} characters, and the limit is 4096.`));
    expect(() => enterTickets(long, never)).not.toThrow(saying(long.slice(0, 40)));
    expect(enterTickets(long, () => 1, { maxLength: long.length })).toBe(1);
    for (const maxLength of [0, 1.5, '5' as unknown as number]) {
      expect(() => enterTickets('nonsense', never, { maxLength })).toThrow(saying(/^enterTickets: maxLength is/));
    }
  });

  beside('what goes on after the function has ended acquires anew', async ({ here, there, key }) => {
    let later: (() => Promise<number>) | undefined;
    await here.withLock(key, async (lock) => {
      elsewhere(makeTickets(), () => {
        later = AsyncResource.bind(() => there.withLock(key, ({ fence }) => fence));
      });
      await expect(AsyncResource.bind(() => there.withLock(key, AT_ONCE, () => 1))()).rejects.toThrow(BUSY);
      expect(await there.withLock(`${key} other`, () => lock.isHeld())).toBe(true);
    });
    expect(await later?.()).toBeGreaterThan(0);
  });

  beside("outsideLocks() leaves the tickets, and reentry: 'never' does not use them", async ({ here, there, key }) => {
    await here.withLock(key, () =>
      elsewhere(makeTickets(), async () => {
        await expect(outsideLocks(() => there.withLock(key, AT_ONCE, () => 1))).rejects.toThrow(BUSY);
        await expect(there.withLock(key, { reentry: 'never', wait: 0 }, () => 1)).rejects.toThrow(BUSY);
      }),
    );
  });

  beside('the tickets alone are no lock: currentLock() and assertLocked() see what was entered', async ({ here, there, key }) => {
    await here.withLock(key, (lock) =>
      elsewhere(makeTickets(), async () => {
        expect(currentLock()).toBeUndefined();
        expect(() => assertLocked(key)).toThrow(saying(/is not held by the code that runs here/));
        await there.withLock(key, () => expect(assertLocked(key).fence).toBe(lock.fence));
      }),
    );
  });

  beside('an Observable is inside until it ends, and each subscription is', async ({ here, there, key }) => {
    await here.withLock(key, async (lock) => {
      const lazily = (): Observable<number> =>
        new Observable((subscriber) => {
          const timer = setTimeout(() => void from(there.withLock(key, ({ fence }) => fence)).subscribe(subscriber), 10);
          return () => clearTimeout(timer);
        });
      const entered = elsewhere(makeTickets(), lazily);
      expect(await Promise.all([firstValueFrom(entered), firstValueFrom(entered)])).toEqual([lock.fence, lock.fence]);
    });
  });

  beside(
    'the loss of the lock aborts the code in both processes, and the call that came with the ticket rejects',
    async ({ here, there, key }) => {
      let lost = 0;
      const operator = makeLocks(await connectTo(place()));
      // Where nobody is notified, the next renewal finds it.
      const options = { ttl: 5_000 };
      const holding = here.withLock(key, options, async (lock) => {
        lock.signal.addEventListener('abort', () => lost++);
        const entered = elsewhere(makeTickets(), () =>
          there.withLock(key, options, async (joined) => {
            joined.signal.addEventListener('abort', () => lost++);
            const { fence } = (await there.operations.inspect(key)) ?? { fence: 0 };
            expect(await operator.operations.forceRelease(key, { fence })).toBe(true);
            await until('that both were told', () => lost === 2);
          }),
        );
        await expect(entered).rejects.toThrow(LOST);
      });
      await expect(holding).rejects.toThrow(LOST);
    },
  );
}

/** A section, and how many were in it at once. */
function countedSection(): { readonly section: () => Promise<string>; readonly most: () => number } {
  let inside = 0;
  let most = 0;
  const section = async (): Promise<string> => {
    most = Math.max(most, ++inside);
    await sleep(10);
    inside--;
    return 'ran';
  };
  return { section, most: () => most };
}
