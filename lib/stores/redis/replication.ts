import { AsyncResource } from 'node:async_hooks';
import { LockStoreError } from '../../core/errors.js';
import type { HoldRecord } from '../../core/lock-store.js';
import type { RedisSource } from './redis-source.js';
import { RedisConnection } from './redis-connection.js';
import { readAnswers } from './replies.js';
import type { Command } from './script.js';

/** Grants that are confirmed in one command, as many as core renews in one. */
const BATCH = 128;

/** What replication needs of its store. */
export interface ReplicatedStore {
  renewalOf(holds: readonly HoldRecord[]): Command;
  /** Releases a grant that does not count. */
  undo(hold: HoldRecord): Promise<unknown>;
}

interface Grant {
  readonly hold: HoldRecord;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Makes sure that replicas have each grant and each renewal before it counts: the replica that takes over for a lost master knows
 * the lock.
 *
 * A grant is confirmed by a renewal that follows it. The renewal finds out whether the lock is still there, also after a failover in
 * between, and WAIT answers for what it wrote on this connection. Renewals that keep leases have a connection of their
 * own, since WAIT holds up all commands behind it.
 */
export class Replication {
  readonly #store: ReplicatedStore;
  readonly #minReplicas: number;
  readonly #isCluster: boolean;
  readonly #grants: RedisConnection;
  readonly #renewals: RedisConnection;
  readonly #waiting: Grant[] = [];
  #sending = false;

  constructor(store: ReplicatedStore, source: RedisSource, minReplicas: number, isCluster: boolean) {
    this.#store = store;
    this.#minReplicas = minReplicas;
    this.#isCluster = isCluster;
    this.#grants = new RedisConnection(source);
    this.#renewals = new RedisConnection(source);
  }

  /** Resolves when enough replicas have the grant. Otherwise releases it and rejects, with `unknown` where the release failed too. */
  async confirm(hold: HoldRecord): Promise<void> {
    try {
      await this.#queue(hold);
    } catch (error) {
      const undone = await this.#store.undo(hold).then(
        () => true,
        () => false,
      );
      throw error instanceof LockStoreError ? errorOf(hold, error, !undone) : error;
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

  close(): void {
    this.#grants.close();
    this.#renewals.close();
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
   * One batch after the other: grants that come while WAIT holds up the connection go together, and wait once. Bound to where the
   * store was made: under load the loop goes on, and must not keep the context of the call that began it.
   */
  readonly #confirmWaiting = AsyncResource.bind(async (): Promise<void> => {
    this.#sending = true;
    while (this.#waiting.length > 0) {
      await this.#confirmAll(this.#waiting.splice(0, BATCH));
    }
    this.#sending = false;
  });

  async #confirmAll(grants: readonly Grant[]): Promise<void> {
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
    const { reply, confirmed, withinMs } = await connection.runOnReplicas(command, limitMs, this.#minReplicas);
    return {
      held: readAnswers(reply),
      missed: confirmed >= this.#minReplicas ? undefined : tooFew(what, confirmed, this.#minReplicas, withinMs),
    };
  }
}

/** The shortest of the holds' time limits, in milliseconds. */
export function leastLimitOf(holds: readonly HoldRecord[]): number {
  return Math.min(...holds.map((hold) => hold.limitMs));
}

function tooFew(what: string, confirmed: number, wanted: number, withinMs: number): LockStoreError {
  return new LockStoreError(
    `${confirmed} of ${wanted} replicas confirmed the ${what} within ${withinMs} ms. ` +
      'Make sure that enough replicas are connected and keep up, or lower minReplicas of RedisLockStore.',
    '',
    { unknown: false },
  );
}

function gone(): LockStoreError {
  return new LockStoreError('the grant was gone before replicas could confirm it. The call may be repeated.', '', { unknown: false });
}

/** One failure concerns many locks; the error of each caller names its own. */
function errorOf({ key }: HoldRecord, { detail, cause }: LockStoreError, unknown: boolean): LockStoreError {
  return new LockStoreError(`Lock "${key}": ${detail}`, key, { cause, unknown });
}
