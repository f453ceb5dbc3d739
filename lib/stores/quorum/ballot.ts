import { asLockError } from '../../core/background-releases.js';
import { LockStoreError } from '../../core/errors.js';
import type { AcquireReply, Busy } from '../../core/lock-store.js';
import type { Quorum } from './quorum.js';
import type { Answer, QuorumServer } from './quorum-server.js';
import { isLate } from './times.js';
import { tooFew, type Failure } from './too-few.js';

/** How soon the process asks again that has waited longest, and the next one; and how seldom at most, in milliseconds. */
const SOON_MS = [10, 20] as const;
const LONGEST_SOON_MS = 250;

/** Stands for a vote that somebody took away before its fence was settled: the server answers, and does not vote for this owner. */
const GONE = { remainingMs: 0, holder: { by: '', heldMs: 0 }, rank: 0 } as const;

/** What a ballot has done at a server. */
export interface Polling {
  vote(server: QuorumServer): Promise<Answer>;
  /** Is told of each fence that a server stored. */
  stored(fence: number): void;
  /** Gives the server's vote another fence; false where the vote is gone. */
  settle(server: QuorumServer, fence: number): Promise<boolean>;
  withdraw(server: QuorumServer): void;
}

/**
 * One attempt: all servers vote at once, and the lock is granted when a majority has stored one and the same fence.
 *
 * Two majorities have a server in common. It stored the fence of the earlier grant before that was made, and answers the
 * later attempt with a higher one. So the later fence is higher, whoever proposed it.
 *
 * | votes | what follows |
 * |---|---|
 * | a majority, with one fence | granted |
 * | a majority, with several | the highest of them is stored where there is another |
 * | a majority answered, and cannot be for it any more | busy; the votes are withdrawn |
 * | a majority cannot answer any more | unavailable; the votes are withdrawn, those that nobody knows of included |
 *
 * A vote that comes after the grant is given its fence; one that comes after a failure is withdrawn.
 */
export class Ballot {
  readonly result: Promise<AcquireReply>;
  readonly #quorum: Quorum;
  readonly #key: string;
  readonly #polling: Polling;
  /** The fence that each server stored with its vote. */
  readonly #stored = new Map<QuorumServer, number>();
  /** Votes that may have been cast, and do not count. */
  readonly #possible = new Map<QuorumServer, number | undefined>();
  readonly #busy: Refused[] = [];
  readonly #failures: Failure[] = [];
  #missing: number;
  #settling = 0;
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
      polling.vote(server).then(
        (answer) => this.#voted(server, answer),
        (error: unknown) => this.#silent(server, error),
      );
    }
  }

  #voted(server: QuorumServer, { reply, counts }: Answer): void {
    this.#missing--;
    if (isLate(reply)) {
      this.#failures.push({ server, error: late() });
    } else if (Array.isArray(reply)) {
      this.#busy.push(readBusy(reply));
    } else {
      const fence = Number.parseInt(String(reply), 10);
      this.#polling.stored(fence);
      this.#takeVote(server, fence, counts);
    }
    this.#consider();
  }

  #takeVote(server: QuorumServer, fence: number, counts: boolean): void {
    if (counts) {
      this.#stored.set(server, fence);
    } else {
      this.#possible.set(server, fence);
      this.#failures.push({ server, error: server.whyNot() });
    }
  }

  #silent(server: QuorumServer, error: unknown): void {
    this.#missing--;
    this.#fail(server, error);
    this.#consider();
  }

  #fail(server: QuorumServer, error: unknown): void {
    const failure = asLockError(error, this.#key);
    this.#failures.push({ server, error: failure });
    if (failure instanceof LockStoreError && failure.unknown) {
      this.#possible.set(server, undefined);
    }
  }

  #consider(): void {
    if (this.#outcome === undefined) {
      this.#decide();
    }
    if (this.#outcome === 'granted') {
      this.#adopt();
    } else if (this.#outcome === 'failed') {
      this.#withdraw();
    }
  }

  #decide(): void {
    const { majority, servers } = this.#quorum;
    const fence = this.#majorityFence();
    const answered = this.#stored.size + this.#busy.length;
    if (fence !== undefined) {
      this.#outcome = 'granted';
      this.#fence = fence;
      this.#resolve({ fence });
    } else if (this.#settling > 0) {
      // The round is not over.
    } else if (this.#stored.size >= majority) {
      this.#settle();
    } else if (this.#stored.size + this.#missing < majority && answered >= majority) {
      this.#outcome = 'failed';
      this.#resolve(this.#busyReply());
    } else if (answered + this.#missing < majority) {
      this.#outcome = 'failed';
      const cast = this.#stored.size > 0 || this.#possible.size > 0;
      this.#reject(tooFew(this.#key, servers.length, this.#failures, cast));
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

  /** The highest: at each server it is no less than what that server answered itself. */
  #settle(): void {
    const highest = Math.max(...this.#stored.values());
    for (const [server, fence] of this.#stored) {
      if (fence !== highest) {
        // What it stored is about to change, and must not make a majority with a vote that comes now.
        this.#stored.delete(server);
        this.#settling++;
        this.#polling
          .settle(server, highest)
          .then(
            (settled) => void (settled ? this.#stored.set(server, highest) : this.#busy.push(GONE)),
            (error: unknown) => {
              this.#fail(server, error);
              // Its vote is there, also where it was never told of the fence.
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

  /** What came with another fence is to have that of the lock, so that it can be renewed. */
  #adopt(): void {
    for (const [server, fence] of [...this.#stored, ...this.#possible]) {
      if (fence !== undefined && fence !== this.#fence) {
        this.#polling.settle(server, this.#fence).catch(() => undefined);
      }
    }
    this.#stored.clear();
    this.#possible.clear();
  }

  #withdraw(): void {
    for (const server of [...this.#stored.keys(), ...this.#possible.keys()]) {
      this.#polling.withdraw(server);
    }
    this.#stored.clear();
    this.#possible.clear();
  }

  /** When a majority could be free, as far as those know that answered; the holder is whom most of them name. */
  #busyReply(): Busy {
    const { majority } = this.#quorum;
    const leftMs = [...Array.from(this.#stored, () => 0), ...this.#busy.map(({ remainingMs }) => remainingMs)];
    leftMs.sort((first, second) => first - second);
    const holder = mostNamed(this.#busy);
    const rank = Math.min(...this.#busy.map((busy) => busy.rank));
    return { remainingMs: leftMs[majority - 1] ?? 0, holder, recheckMs: recheckMs(rank, holder.heldMs) };
  }
}

/** What a server answers that does not vote for this owner; `rank` is how many processes wait longer. */
interface Refused extends Busy {
  readonly rank: number;
}

function readBusy([remainingMs, by, heldMs, rank]: readonly unknown[]): Refused {
  return { remainingMs: Number(remainingMs), holder: { by: String(by), heldMs: Number(heldMs) }, rank: Number(rank) };
}

/** Those who are about to have their turn ask soon, the longer the lock is held the less often; the others as core does. */
function recheckMs(rank: number, heldMs: number): number | undefined {
  const least = SOON_MS[rank];
  return least && Math.min(Math.max(least, heldMs / 2), LONGEST_SOON_MS) * (0.5 + Math.random() / 2);
}

function late(): LockStoreError {
  return new LockStoreError('the vote came too late', '', { unknown: false });
}

function mostNamed(busy: readonly Busy[]): Busy['holder'] {
  const named = new Map<string, number>();
  for (const { holder } of busy) {
    named.set(holder.by, (named.get(holder.by) ?? 0) + 1);
  }
  const most = Math.max(...named.values());
  return (busy.find(({ holder }) => named.get(holder.by) === most) as Busy).holder;
}
