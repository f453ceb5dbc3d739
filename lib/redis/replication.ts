import { AsyncResource } from 'node:async_hooks';
import { LockStoreError } from '../core/words/errors.js';
import type { HoldRecord } from '../core/seam/lock-store.js';
import { leastLimitOf } from '../core/seam/time.js';
import { Withdrawals } from '../kit/withdrawals.js';
import { NoReply } from '../kit/no-reply.js';
import { CommandTimeouts } from './connection/command-timeouts.js';
import { HoldNames } from './hold-names.js';
import type { RedisOrigin } from './connection/redis-source.js';
import { RedisConnection } from './connection/redis-connection.js';
import { readAnswers } from './scripts/redis-commands.js';
import type { Command } from './scripts/script.js';

/** Grants that are confirmed in one command, as many as core renews in one. */
const BATCH = 128;
/**
 * The part of the rest of a hold's time limit that replicas may take to confirm its grant. The remainder is for the
 * withdrawal.
 */
const CONFIRMING = 0.75;

/** How long replicas may take to confirm the write of a health check, in milliseconds: grants wait behind it. */
const CHECK_MS = 500;

/** The part of its store that replication needs. */
interface ReplicatedStore {
  renewalOf(holds: readonly HoldRecord[]): Command;
  /** Releases a grant that does not count; rejects where there is no answer within `limitMs`. */
  withdraw(hold: HoldRecord, limitMs: number): Promise<unknown>;
}

interface UnconfirmedGrant {
  readonly hold: HoldRecord;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Makes sure that replicas have each grant and each renewal before it counts: the replica that takes over for a lost
 * master knows the lock.
 *
 * A grant is confirmed by a renewal that follows it. The renewal finds out whether the lock is still there, also after
 * a failover in between, and WAIT confirms the writes of the renewal on this connection. Renewals that keep leases have
 * a connection of their own, since WAIT holds up all commands behind it.
 */
export class Replication {
  readonly #store: ReplicatedStore;
  readonly #minReplicas: number;
  readonly #isCluster: boolean;
  readonly #grants: RedisConnection;
  readonly #renewals: RedisConnection;
  readonly #waiting: UnconfirmedGrant[] = [];
  readonly names = new HoldNames();
  /** The grants that are to be confirmed, by the ids of their holds. */
  readonly #confirming = new Map<string, { isAskedAgain: boolean }>();
  readonly #withdrawals = new Withdrawals();
  readonly #timeouts = new CommandTimeouts(() => undefined);
  #sending = false;

  constructor(store: ReplicatedStore, origin: RedisOrigin, minReplicas: number, isCluster: boolean) {
    this.#store = store;
    this.#minReplicas = minReplicas;
    this.#isCluster = isCluster;
    this.#grants = new RedisConnection(origin);
    this.#renewals = new RedisConnection(origin);
  }

  /**
   * Another attempt is made at a hold, since core has given up the earlier one. The earlier grant must not be withdrawn
   * any more: that would take the lock from this attempt.
   */
  asksAgain({ id }: HoldRecord): void {
    const earlier = this.#confirming.get(id);
    if (earlier) {
      earlier.isAskedAgain = true;
    }
  }

  /**
   * Resolves when enough replicas have a grant, which was asked for at `sentAt`. Otherwise withdraws the grant and
   * rejects, within the time limit of the hold: with `unknown` where the withdrawal was not answered by then. The
   * withdrawal is repeated until it is answered. Where the hold is asked for again meanwhile, the grant is left to that
   * attempt.
   */
  async confirm(hold: HoldRecord, fence: number, sentAt: number): Promise<void> {
    const granted = { ...this.names.named(hold), fence };
    const endsAt = sentAt + hold.limitMs;
    const confirming = { isAskedAgain: false };
    this.asksAgain(hold);
    this.#confirming.set(hold.id, confirming);
    try {
      await this.#timeouts.bound(this.#queue(granted), CONFIRMING * (endsAt - performance.now()));
    } catch (error) {
      const isWithdrawn = !confirming.isAskedAgain && (await this.#withdraw(hold, granted, endsAt));
      throw errorOf(hold, error, !isWithdrawn);
    } finally {
      if (this.#confirming.get(hold.id) === confirming) {
        this.#confirming.delete(hold.id);
      }
    }
  }

  /** Renews; undefined for a lease that too few replicas have. Rejects where that is so for all of them. */
  async renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
    const { held, missed } = await this.#renew(this.#renewals, this.#store.renewalOf(holds), leastLimitOf(holds), 'renewal');
    if (missed && held.every(Boolean)) {
      throw errorOf(holds[0] as HoldRecord, missed, false);
    }
    return missed ? held.map((is) => is && undefined) : held;
  }

  /** Whether enough replicas confirm a write now; a message is written to `channel`. */
  async isConfirmed(channel: string): Promise<boolean> {
    try {
      return (await this.#grants.plain.confirming(channel, this.#minReplicas, CHECK_MS)) >= this.#minReplicas;
    } catch {
      return false;
    }
  }

  close(): void {
    this.#withdrawals.close();
    this.#grants.close();
    this.#renewals.close();
  }

  async #withdraw(hold: HoldRecord, granted: HoldRecord, endsAt: number): Promise<boolean> {
    const withdraw = (limitMs: number): Promise<unknown> => this.#store.withdraw(granted, limitMs);
    this.names.rename(hold);
    try {
      await withdraw(Math.max(1, endsAt - performance.now()));
      return true;
    } catch (error) {
      this.#withdrawals.repeat(() => withdraw(hold.limitMs), hold.ttlMs, error);
      return false;
    }
  }

  #queue(hold: HoldRecord): Promise<void> {
    return new Promise((resolve, reject) => {
      const grant = { hold, resolve, reject };
      if (this.#isCluster) {
        // On a cluster the keys of one command must share a slot.
        void this.#confirmAll([grant]);
        return;
      }
      this.#waiting.push(grant);
      if (!this.#sending) {
        void this.#confirmWaiting();
      }
    });
  }

  /**
   * Confirms one batch after the other: grants that come while WAIT holds up the connection go together, and wait once.
   * Bound to where the store was made: under load the loop goes on, and must not keep the context of the call that
   * began it.
   */
  readonly #confirmWaiting = AsyncResource.bind(async (): Promise<void> => {
    this.#sending = true;
    while (this.#waiting.length > 0) {
      await this.#confirmAll(this.#waiting.splice(0, BATCH));
    }
    this.#sending = false;
  });

  async #confirmAll(grants: readonly UnconfirmedGrant[]): Promise<void> {
    const holds = grants.map(({ hold }) => hold);
    // The longest: a grant with a short lease is late by itself, and must not end the wait of the others.
    const limitMs = Math.max(...holds.map((hold) => hold.limitMs));
    try {
      const { held, missed } = await this.#renew(this.#grants, { ...this.#store.renewalOf(holds), key: '' }, limitMs, 'grant');
      grants.forEach(({ resolve, reject }, index) => {
        const failure = held[index] ? missed : gone();
        if (failure) {
          reject(failure);
        } else {
          resolve();
        }
      });
    } catch (error) {
      for (const { reject } of grants) {
        reject(error);
      }
    }
  }

  async #renew(
    connection: RedisConnection,
    command: Command,
    limitMs: number,
    what: string,
  ): Promise<{ held: boolean[]; missed: LockStoreError | undefined }> {
    const replicas = this.#minReplicas;
    // The answer comes in time where WAIT takes half of it. For WAIT, 0 is for ever.
    const withinMs = Math.max(1, Math.floor(limitMs / 2));
    const replies = await connection.run(command, limitMs, (each) => each as readonly unknown[], { replicas, withinMs });
    const confirmed = Number(replies[1]);
    return {
      held: readAnswers(replies[0]),
      missed: confirmed >= replicas ? undefined : tooFew(what, confirmed, replicas, withinMs),
    };
  }
}

function tooFew(what: string, confirmed: number, wanted: number, withinMs: number): LockStoreError {
  return new LockStoreError(`${confirmed} of ${wanted} replicas confirmed the ${what} within ${withinMs} ms. ${CURE}`, '', {
    unknown: false,
  });
}

function gone(): LockStoreError {
  return new LockStoreError('the grant was gone before replicas could confirm it. The call may be repeated.', '', { unknown: false });
}

/** One failure concerns many locks; the error of each caller names its own. */
function errorOf({ key }: HoldRecord, error: unknown, unknown: boolean): Error {
  if (error instanceof LockStoreError) {
    return new LockStoreError(`Lock "${key}": ${error.detail}`, key, { cause: error.cause, unknown });
  }
  return error instanceof NoReply
    ? new LockStoreError(`Lock "${key}": too few replicas confirmed the grant: ${error.message}. ${CURE}`, key, { cause: error, unknown })
    : (error as Error);
}

const CURE = 'Make sure that enough replicas are connected and keep up, or lower minReplicas of RedisLockStore.';
