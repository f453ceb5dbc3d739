import type { HoldRecord } from '../../core/seam/lock-store.js';
import { fieldOf, RedisCommands } from '../../redis/scripts/redis-commands.js';
import type { Argument, Command } from '../../redis/scripts/script.js';
import { REPORT, SETTLE, VOTE } from './scripts.js';

/** The request of a hold for the votes of the servers. */
export interface VoteRequest {
  readonly hold: Pick<HoldRecord, 'key' | 'owner' | 'id' | 'fences' | 'ttlMs' | 'by'>;
  /** Names the vote: rises with each attempt of this process; 0 for a hold that joined by a ticket. */
  readonly attempt: number;
  /** The fence that the process proposes. */
  readonly fence: number;
  /** For how long the caller has waited, in milliseconds. */
  readonly waitedMs: number;
  /** How old the lock is where the vote is cast again, in milliseconds; else 0. */
  readonly ageMs: number;
}

/** The report of a process to a server. */
export interface Report {
  /** The run of the server that it speaks to. */
  readonly run: string;
  /** Whether it knows an earlier run of this server. */
  readonly restarted: boolean;
  /** `again` or `first` if the server's votes count from now on. */
  readonly counts: '' | 'again' | 'first';
  /** The fence that is the server's last one then, unless it has a higher one. */
  readonly least: number;
  /** Names, each with for how many milliseconds it holds. */
  readonly said: readonly Argument[];
}

/** The commands of a quorum: its own, and those of the Redis store, whose holds are votes here. */
export class QuorumCommands extends RedisCommands {
  /** `latest` is the latest server time at which the server may vote, in ms since 1970; 0 where that is unknown. */
  vote({ hold, attempt, fence, waitedMs, ageMs }: VoteRequest, latest: number): Command {
    const { key, owner, id, fences, ttlMs, by } = hold;
    const tag = this.names.tag(key);
    const vote = voteOf(id, attempt);
    return VOTE.command(key, {
      lock: this.names.lock(tag),
      done: this.names.done(tag, id),
      withdrawn: this.names.done(tag, vote),
      counter: this.names.fence(tag),
      waiters: `${this.names.prefix}:waiters:${tag}`,
      owner,
      votes: fieldOf(voteOf(id, '')),
      vote: fieldOf(vote),
      process: this.process,
      by,
      fence,
      attempt,
      ttl: Math.ceil(ttlMs),
      waited: waitedMs,
      fences,
      age: Math.floor(ageMs),
      latest,
    });
  }

  /** Gives a vote another fence. */
  settle({ key, owner, fences }: Pick<HoldRecord, 'key' | 'owner' | 'fences'>, vote: string, fence: number): Command {
    const tag = this.names.tag(key);
    const [lock, counter, field] = [this.names.lock(tag), this.names.fence(tag), fieldOf(vote)];
    return SETTLE.command(key, { lock, counter, owner, vote: field, fence, last: fence + fences - 1 });
  }

  /** Reports the knowledge of the process about the servers, and asks for the knowledge of this server. */
  report({ run, restarted, counts, least, said }: Report): Command {
    return REPORT.command('', {
      record: `${this.names.prefix}:run:{0}`,
      counter: this.names.fence(''),
      run,
      counts,
      least,
      restarted: restarted ? 1 : 0,
      said,
    });
  }
}

/**
 * The name of a vote: the hold of one attempt, or a hold that joined (0). A late command of one attempt concerns no
 * other attempt.
 */
export function voteOf(hold: string, attempt: number | ''): string {
  return attempt === 0 ? hold : `${hold}.${attempt}`;
}

/** The number of the attempt in the name of a vote; 0 in the name of a hold that joined. */
export function attemptOf(vote: string): number {
  return vote.includes('.') ? Number(vote.slice(vote.lastIndexOf('.') + 1)) : 0;
}
