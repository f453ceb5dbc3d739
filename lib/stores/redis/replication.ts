import { AsyncResource } from 'node:async_hooks';
import { LockStoreError } from '../../core/errors.js';
import type { HoldRecord } from '../../core/lock-store.js';
import type { RedisSource } from './redis-client.js';
import { RedisConnection } from './redis-connection.js';
import { readAnswers } from './replies.js';
import { RENEW } from './scripts.js';

/** Grants that are confirmed in one command, as many as core renews in one. */
const BATCH = 128;

/** What the script `RENEW` is run with for some holds, and the shortest of their time limits. */
export interface Renewal {
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
  readonly limitMs: number;
}

/** What replication needs of its store. */
export interface ReplicatedStore {
  renewalOf(holds: readonly HoldRecord[]): Renewal;
  /** Takes back a grant that does not count. */
  undo(hold: HoldRecord): Promise<unknown>;
}

interface Grant {
  readonly hold: HoldRecord;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Makes sure that replicas have what counts, each grant and each renewal: a lock whose master is lost is still known to
 * the replica that takes over.
 *
 * A grant is confirmed by a renewal that follows it. That finds out whether the lock is still there, a failover in between
 * included, and writes to this connection what WAIT then answers for. Renewals that keep leases have a connection of their
 * own, since WAIT holds up all that comes behind it.
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

  /** Resolves when enough replicas have the grant. Takes it back otherwise, and rejects; with `unknown` where that failed too. */
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

  /** Renews; undefined for a lease that too few replicas know of. Rejects where that is all there is to say. */
  async renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
    const { held, missed } = await this.#renew(this.#renewals, holds[0]?.key ?? '', this.#store.renewalOf(holds), 'renewal');
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
   * One batch after the other: what comes while WAIT holds up the connection goes together, and waits once. Bound to where the
   * store was made: under load it goes on and on, and must not keep the context of the call that began it.
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
    // The longest: whoever has a short lease is late by itself, and must not end the others' wait.
    const limitMs = Math.max(...holds.map((hold) => hold.limitMs));
    try {
      const { held, missed } = await this.#renew(this.#grants, '', { ...this.#store.renewalOf(holds), limitMs }, 'grant');
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
    key: string,
    { keys, args, limitMs }: Renewal,
    what: string,
  ): Promise<{ held: boolean[]; missed: LockStoreError | undefined }> {
    const { reply, confirmed, withinMs } = await connection.runOnReplicas(RENEW, key, keys, args, limitMs, this.#minReplicas);
    return {
      held: readAnswers(reply),
      missed: confirmed >= this.#minReplicas ? undefined : tooFew(what, confirmed, this.#minReplicas, withinMs),
    };
  }
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

/** One failure concerns many locks; each caller is told of its own. */
function errorOf({ key }: HoldRecord, { detail, cause }: LockStoreError, unknown: boolean): LockStoreError {
  return new LockStoreError(`Lock "${key}": ${detail}`, key, { cause, unknown });
}
