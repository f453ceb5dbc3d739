import { asLockError, LockStoreError } from '../../core/words/errors.js';
import type { AcquireReply } from '../../core/seam/lock-store.js';
import { busyReply, GONE } from './busy.js';
import type { Quorum } from '../quorum.js';
import type { Answer, QuorumServer } from '../members/quorum-server.js';
import { readVote, type Refusal } from './replies.js';
import { tooFew, type Failure } from '../too-few.js';

/** The actions of a ballot at a server. */
export interface Polling {
  /** For how many milliseconds an attempt waits for all answers when another owner has got votes. */
  readonly contestMs: number;
  vote(server: QuorumServer): Promise<Answer>;
  /** A server has stored that fence. */
  stored(fence: number): void;
  /** Gives the server's vote another fence; false where the vote is gone. */
  settle(server: QuorumServer, fence: number): Promise<boolean>;
  /** Gives a vote that came late another fence: the lock is granted already. */
  adopt(server: QuorumServer, fence: number): void;
  withdraw(server: QuorumServer): void;
  /** Why the server's vote does not count. */
  notCounted(server: QuorumServer): LockStoreError;
}

/**
 * One attempt: all servers vote at once, and the lock is granted when a majority has stored one and the same fence.
 *
 * Two majorities have a server in common. That server stored the fence of the earlier grant before the grant was made,
 * and answers the later attempt with a higher fence. So the later fence is higher, whichever process proposed it.
 *
 * | votes | result |
 * |---|---|
 * | a majority, with one fence | granted |
 * | a majority, with several fences | the highest fence is stored where there is another |
 * | a majority answered, and cannot be for it any more | busy; the votes are withdrawn |
 * | a majority answered, another owner has votes, the rest is slow | busy; votes withdrawn, so one owner gets on |
 * | a majority cannot answer any more | unavailable; the votes are withdrawn, also votes that may not have been cast |
 *
 * A vote that comes after the grant gets the fence of the grant; a vote that comes after a failure is withdrawn.
 */
export class Ballot {
  readonly result: Promise<AcquireReply>;
  readonly #quorum: Quorum;
  readonly #key: string;
  readonly #polling: Polling;
  readonly #startedAt = performance.now();
  /** The fence that each server stored with its vote. */
  readonly #stored = new Map<QuorumServer, number>();
  /** Votes that may have been cast, and do not count. */
  readonly #possible = new Map<QuorumServer, number | undefined>();
  readonly #refusals: Refusal[] = [];
  readonly #failures: Failure[] = [];
  #missing: number;
  #settling = 0;
  #contest: NodeJS.Timeout | undefined;
  #contestIsOver = false;
  #outcome: 'granted' | 'failed' | undefined;
  #fence = 0;
  #resolve!: (reply: AcquireReply) => void;
  #reject!: (error: unknown) => void;

  constructor(quorum: Quorum, key: string, polling: Polling) {
    this.#quorum = quorum;
    this.#key = key;
    this.#polling = polling;
    this.#missing = quorum.servers.length;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    for (const server of quorum.servers) {
      polling
        .vote(server)
        .then(
          (answer) => this.#voted(server, answer),
          (error: unknown) => this.#fail(server, error),
        )
        .finally(() => {
          this.#missing--;
          this.#consider();
        });
    }
  }

  #voted(server: QuorumServer, { reply, counts }: Answer): void {
    const vote = readVote(reply);
    if (vote === 'late') {
      this.#failures.push({ server, error: new LockStoreError('the vote came too late', '', { unknown: false }) });
    } else if (vote.fence === undefined) {
      this.#refusals.push(vote);
      this.#contest ??= setTimeout(() => this.#endContest(), this.#startedAt + this.#polling.contestMs - performance.now()).unref();
    } else {
      this.#polling.stored(vote.fence);
      (counts ? this.#stored : this.#possible).set(server, vote.fence);
      if (!counts) {
        this.#failures.push({ server, error: this.#polling.notCounted(server) });
      }
    }
  }

  #fail(server: QuorumServer, error: unknown): void {
    const failure = asLockError(error, this.#key);
    this.#failures.push({ server, error: failure });
    if (failure instanceof LockStoreError && failure.unknown) {
      this.#possible.set(server, undefined);
    }
  }

  #endContest(): void {
    this.#contestIsOver = true;
    this.#consider();
  }

  #consider(): void {
    if (this.#outcome === undefined) {
      this.#decide();
    }
    if (this.#outcome !== undefined) {
      clearTimeout(this.#contest);
      this.#tidy();
    }
  }

  #decide(): void {
    const { majority, servers } = this.#quorum;
    const fence = this.#majorityFence();
    const votes = this.#stored.size;
    const answered = votes + this.#refusals.length;
    const isLost = this.#contestIsOver || votes + this.#missing < majority;
    if (fence !== undefined) {
      this.#outcome = 'granted';
      this.#fence = fence;
      this.#resolve({ fence });
    } else if (this.#settling > 0) {
      // The round is not over.
    } else if (votes >= majority) {
      this.#settle();
    } else if (isLost && answered >= majority) {
      this.#outcome = 'failed';
      this.#resolve(busyReply(votes, this.#refusals, majority, performance.now() - this.#startedAt));
    } else if (answered + this.#missing < majority) {
      this.#outcome = 'failed';
      // A vote that does not count has a failure, which says that it may be there.
      this.#reject(tooFew(this.#key, servers.length, this.#failures, votes > 0));
    }
  }

  #majorityFence(): number | undefined {
    const counts = new Map<number, number>();
    for (const fence of this.#stored.values()) {
      const count = (counts.get(fence) ?? 0) + 1;
      if (count === this.#quorum.majority) {
        return fence;
      }
      counts.set(fence, count);
    }
    return undefined;
  }

  /** The highest fence: at each server it is no less than the server's own answer. */
  #settle(): void {
    const highest = Math.max(...this.#stored.values());
    for (const [server, fence] of this.#stored) {
      if (fence !== highest) {
        // The stored fence is about to change, and must not make a majority with a vote that comes now.
        this.#stored.delete(server);
        this.#settling++;
        this.#polling
          .settle(server, highest)
          .then(
            (settled) => void (settled ? this.#stored.set(server, highest) : this.#refusals.push(GONE)),
            (error: unknown) => {
              this.#fail(server, error);
              // The vote of the server is there, also where the new fence did not reach it.
              this.#possible.set(server, undefined);
            },
          )
          .finally(() => {
            this.#settling--;
            this.#consider();
          });
      }
    }
  }

  /**
   * Withdraws the votes after a failure. After a grant, a vote with another fence gets the fence of the lock, so that
   * it can be renewed.
   */
  #tidy(): void {
    for (const [server, fence] of [...this.#stored, ...this.#possible]) {
      if (this.#outcome === 'failed') {
        this.#polling.withdraw(server);
      } else if (fence !== undefined && fence !== this.#fence) {
        this.#polling.adopt(server, this.#fence);
      }
    }
    this.#stored.clear();
    this.#possible.clear();
  }
}
