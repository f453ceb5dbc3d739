import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockNotAcquiredError } from '../../lib/core/words/errors';
import type { Lock } from '../../lib/core/words/lock';
import type { LockService } from '../../lib/nest/lock.service';
import { makeLocks } from '../support/make-locks';
import { Random, seedsOf } from '../support/random';
import { connectTo, wasSlow } from '../support/sends-again';
import { until } from '../support/until';
import type { StorePlace } from '../support/stores';

const SERVICES = 3;
const KEYS = 3;
const CALLERS = 12;
const CALLS = 6;

/** The section that a key protects: a caller that is not alone in it is seen, or loses a count. */
class Protected {
  readonly key = `key ${randomUUID()}`;
  count = 0;
  sections = 0;
  intruders = 0;
  /** Fences that were not above the one before. */
  disorders = 0;
  #fence = 0;
  #inside = false;

  async enter(lock: Lock, ms: number): Promise<void> {
    const fence = lock.fenceOf(this.key);
    this.intruders += Number(this.#inside);
    this.disorders += Number(fence <= this.#fence);
    this.#inside = true;
    this.#fence = fence;
    this.sections++;
    const seen = this.count;
    await sleep(ms);
    this.count = seen + 1;
    this.#inside = false;
  }
}

/**
 * Random calls of every kind from several processes: nobody is ever let in beside another caller, and nothing stays
 * taken.
 */
export function fuzzSuite(place: () => StorePlace): void {
  test('random calls of several processes are alone in what they lock, have rising fences, and leave nothing taken', async () => {
    for (const seed of seedsOf(2)) {
      const services = await Promise.all(
        Array.from({ length: SERVICES }, async () => makeLocks(await connectTo(place()), { wait: 30_000 })),
      );
      const guarded = Array.from({ length: KEYS }, () => new Protected());
      const callers = Array.from({ length: CALLERS }, (_, caller) => call(services, guarded, new Random(seed * CALLERS + caller)));
      await Promise.all(callers);
      for (const { key, count, sections, intruders, disorders } of guarded) {
        expect({ seed, count, intruders, disorders }).toEqual({ seed, count: sections, intruders: 0, disorders: 0 });
        expect(sections).toBeGreaterThan(CALLERS / 2);
        // Locks that were given up are released in the background.
        await until(`${key} is free`, async () => (await services[0]?.operations.inspect(key)) === null);
      }
    }
  }, 120_000);
}

async function call(services: readonly LockService[], guarded: readonly Protected[], random: Random): Promise<void> {
  for (let round = 0; round < CALLS; round++) {
    const service = random.pick(services);
    const other = random.pick(services);
    const first = random.pick(guarded);
    const second = random.pick(guarded);
    const ms = random.between(0, 4);
    const one = (lock: Lock): Promise<void> => first.enter(lock, ms);
    const kinds: readonly (() => Promise<unknown>)[] = [
      () => service.withLock(first.key, { wait: 30_000 }, one),
      () => service.withLock(first.key, { wait: 30_000, renew: false, minHold: random.whole(0, 10) }, one),
      () => refusable(service.withLock(first.key, { wait: random.whole(0, 60) }, one)),
      () => refusable(service.withLock(first.key, { wait: 30_000, signal: AbortSignal.timeout(random.whole(1, 60)) }, one)),
      () => nested(service, first, second, ms),
      () => several(service, guarded, ms),
      () => joined(service, other, first, ms),
      () => byHand(service, first, ms),
    ];
    await random.pick(kinds)();
    await sleep(random.between(0, 5));
  }
}

/**
 * A call that may be refused, and fails in no other way; but a brief call has no time to ask again where a server
 * stands still for a second.
 */
async function refusable<T>(called: Promise<T>): Promise<T | undefined> {
  return called.catch((error: unknown) => {
    if (!(error instanceof LockNotAcquiredError) && !wasSlow(error)) {
      throw error;
    }
    return undefined;
  });
}

async function nested(service: LockService, first: Protected, second: Protected, ms: number): Promise<void> {
  await service.withLock(first.key, { wait: 30_000 }, async (outer) => {
    await service.withLock(first.key, { wait: 0 }, (inner) => {
      expect(inner.fence).toBe(outer.fence);
    });
    if (second !== first) {
      await refusable(service.withLock(second.key, { wait: 0 }, (lock) => second.enter(lock, ms)));
    }
    await first.enter(outer, ms);
  });
}

async function several(service: LockService, guarded: readonly Protected[], ms: number): Promise<void> {
  const keys = guarded.map(({ key }) => key);
  await service.withLock(keys, { wait: 30_000 }, (lock) => Promise.all(guarded.map((one) => one.enter(lock, ms))));
}

/** The holder waits while another process works inside its lock. */
async function joined(service: LockService, other: LockService, first: Protected, ms: number): Promise<void> {
  await service.withLock(first.key, { wait: 30_000 }, (holder) =>
    other.withLock(first.key, { ticket: holder.makeTicket() }, (lock) => first.enter(lock, ms)),
  );
}

async function byHand(service: LockService, first: Protected, ms: number): Promise<void> {
  const lock = await refusable(service.tryAcquire(first.key));
  await lock?.run(() => first.enter(lock, ms));
  await lock?.release();
}
