import assert from 'node:assert/strict';
import { isLockError, type LockStoreError } from '../../core/words/errors.js';
import { rule, type Rule } from '../rule.js';
import { changed, eventually, newPlace, TooSlow, type Trial } from '../trial.js';

/** How long commands may take while the database stands still, in milliseconds. */
const LIMIT_MS = 200;
/** How much later core stops waiting, in milliseconds. */
const GRACE_MS = 250;
/** How often it is measured whether this process was stopped, in milliseconds. */
const TICK_MS = 5;

/** Measures for how long this process was stopped: a busy machine is no fault of the store. */
class Stops {
  #ms = 0;
  #lastAt = performance.now();
  readonly #ticks = setInterval(() => this.#tick(), TICK_MS);

  /** For how long it was stopped so far, in milliseconds. */
  get ms(): number {
    this.#tick();
    return this.#ms;
  }

  end(): void {
    clearInterval(this.#ticks);
  }

  #tick(): void {
    const now = performance.now();
    this.#ms += Math.max(0, now - this.#lastAt - 2 * TICK_MS);
    this.#lastAt = now;
  }
}

/**
 * For how long expectations are tried after the database stood still, in milliseconds: a store may connect anew first.
 */
const RECOVERY_MS = 10_000;

/** How much of a stall a call takes at least that it holds up: a tenth. */
const HELD_UP = 0.1;

/** A call, and how long it may take. */
interface TimedCall {
  readonly limitMs: number;
  readonly call: () => Promise<unknown>;
}

/**
 * Stops the database, calls, and expects each call to settle in its time; a rejection has to be a `LockStoreError`. At
 * least one call has to notice the stall.
 */
async function expectInTime(trial: Trial, calls: Readonly<Record<string, TimedCall>>): Promise<void> {
  const stallMs = Math.max(...Object.values(calls).map(({ limitMs }) => limitMs)) + 400;
  let overAt = Infinity;
  const over = trial.options.stall?.(stallMs).finally(() => {
    overAt = performance.now();
  });
  // The promise is awaited later, and may fail before.
  over?.catch(() => undefined);
  await trial.pass(20);
  const sentAt = performance.now();
  const stops = new Stops();
  const settled = Object.entries(calls).map(async ([name, { limitMs, call }]) => {
    const failure = await call().then(
      () => undefined,
      (error: unknown) => error,
    );
    const elapsedMs = performance.now() - sentAt;
    return { name, limitMs, failure, elapsedMs, tookMs: elapsedMs - stops.ms };
  });
  const results = await Promise.all(settled);
  stops.end();
  await over;
  const isNoticed = results.some(({ failure, elapsedMs }) => failure !== undefined || elapsedMs > HELD_UP * stallMs);
  // The calls may have come late, or the timer of `stall` early: it counts from the last reading of the clock, before a
  // stop of this process.
  const leftMs = Math.max(0, Math.round(overAt - sentAt));
  if (!isNoticed && leftMs < stallMs / 2) {
    throw new TooSlow(`when the calls came, the database stood still for ${leftMs} ms more, of ${stallMs} ms`);
  }
  assert.ok(
    isNoticed,
    '`stall` stopped nothing: every call was answered at once. Make sure that the database stands still 20 ms after the call',
  );
  for (const { name, limitMs, failure, tookMs } of results) {
    assert.ok(tookMs <= limitMs + GRACE_MS, `${name} took ${Math.round(tookMs)} ms; its limit is ${limitMs} ms`);
    assert.ok(failure === undefined || isStoreError(failure), `${name} rejected with ${String(failure)}, not with a LockStoreError`);
  }
}

function isStoreError(error: unknown): error is LockStoreError {
  return isLockError(error) && error.code === 'LOCK_STORE' && typeof (error as LockStoreError).unknown === 'boolean';
}

/** Rules about a store whose database does not answer. */
export const TIME_LIMIT_RULES: readonly Rule[] = [
  rule(
    'acquire, renew and release settle within their limit while the database stands still, and work again after it',
    { needs: ['stall'], withinMs: 1_000 },
    async (trial) => {
      const long = { ttlMs: trial.ttl(10_000) };
      const held = await trial.acquired({ ...long, unanswered: true });
      const renewed = await trial.acquired({ ...long, key: `${trial.key} renewed` });
      const limit = { limitMs: LIMIT_MS };
      await expectInTime(trial, {
        acquire: { ...limit, call: () => trial.store.acquire(trial.hold({ ...long, ...limit, key: `${trial.key} new` })) },
        renew: { ...limit, call: () => trial.store.renew([changed(renewed, limit)]) },
        release: { ...limit, call: () => trial.store.release(changed(held, limit)) },
      });
      await eventually(async () => {
        assert.deepEqual(await trial.store.renew([renewed]), [true]);
        assert.equal(await trial.store.release(held), true);
        await trial.expectFree();
      }, RECOVERY_MS);
    },
  ),

  rule(
    'an acquire that was not answered is answered when it is repeated, and a release ends it',
    { needs: ['stall'], withinMs: 1_000 },
    async (trial) => {
      const attempt = trial.hold({ ttlMs: trial.ttl(10_000), limitMs: LIMIT_MS, unanswered: true });
      await expectInTime(trial, { acquire: { limitMs: LIMIT_MS, call: () => trial.store.acquire(attempt) } });
      await eventually(async () => void (await trial.granted(attempt)), RECOVERY_MS);
      await eventually(async () => {
        assert.equal(await trial.store.release(attempt), true);
        await trial.expectFree(trial.other);
      }, RECOVERY_MS);
    },
  ),

  rule('join settles within its limit while the database stands still', { needs: ['tickets', 'stall'], withinMs: 1_000 }, async (trial) => {
    const held = await trial.acquired({ ttlMs: trial.ttl(10_000) });
    const limit = { limitMs: LIMIT_MS };
    await expectInTime(trial, { join: { ...limit, call: () => trial.store.tickets.join(changed(held, { id: 'guest', ...limit })) } });
  }),

  rule(
    'inspect and forceRelease settle within a second while the database stands still',
    { needs: ['operator', 'stall'], withinMs: 1_800 },
    async (trial) => {
      const { fence } = await trial.acquired({ ttlMs: trial.ttl(10_000) });
      await expectInTime(trial, {
        inspect: { limitMs: 1_000, call: () => trial.store.operator.inspect(trial.key) },
        forceRelease: { limitMs: 1_000, call: () => trial.store.operator.forceRelease(`${trial.key} of nobody`, fence) },
      });
    },
  ),

  rule('health settles within a second while the database stands still', { needs: ['health', 'stall'], withinMs: 1_800 }, async (trial) =>
    expectInTime(trial, { health: { limitMs: 1_000, call: () => trial.store.health() } }),
  ),

  rule(
    'leave and exchange settle in their time while the database stands still',
    { needs: ['turns', 'stall'], withinMs: 1_800 },
    async (trial) => {
      const held = await trial.acquired({ ttlMs: trial.ttl(10_000) });
      const next = trial.hold({ limitMs: LIMIT_MS });
      await expectInTime(trial, {
        exchange: {
          limitMs: LIMIT_MS,
          call: async () => {
            const { reply } = await trial.store.turns.exchange(changed(held, { limitMs: LIMIT_MS }), next, newPlace(), true);
            await reply;
          },
        },
        leave: { limitMs: 1_000, call: () => trial.store.turns.leave(trial.key, newPlace().name) },
      });
    },
  ),
];
