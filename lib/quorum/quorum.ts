import { randomUUID } from 'node:crypto';
import { asLockError, isLockError } from '../core/words/errors.js';
import { throwIfAllFailed } from '../kit/all-failed.js';
import { Withdrawals } from '../kit/withdrawals.js';
import { toLockError } from '../redis/connection/redis-errors.js';
import type { RedisOrigin } from '../redis/connection/redis-source.js';
import type { Participant } from './members/member.js';
import { clockOf, Membership } from './members/membership.js';
import type { QuorumCommands } from './votes/quorum-commands.js';
import { QuorumServer } from './members/quorum-server.js';
import { tooFew, type Failure } from './too-few.js';
import { majorityAmong } from './votes/verdicts.js';

/** The servers of a quorum, which are asked all at once. */
export class Quorum {
  readonly servers: readonly QuorumServer[];
  readonly majority: number;
  readonly commands: QuorumCommands;
  readonly membership: Membership;
  readonly withdrawals = new Withdrawals();
  #opening: Promise<readonly (Failure | undefined)[]> | undefined;
  #isOpen = false;

  constructor(origins: readonly RedisOrigin[], commands: QuorumCommands, participant: Participant) {
    this.servers = origins.map(
      (origin, at) =>
        new QuorumServer(
          origin,
          `server ${at + 1} of ${origins.length}`,
          (session) => this.membership.connected(at, session),
          () => this.membership.mayCount(at),
        ),
    );
    this.majority = majorityAmong(origins.length);
    this.commands = commands;
    this.membership = new Membership(this.servers, commands, participant);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The time of the clocks of a majority, in ms since 1970. */
  get clockMs(): number | undefined {
    return clockOf(this.servers);
  }

  /** How old the lock with that fence is, in milliseconds: a fence is about the time of its grant. */
  ageMs(fence: number): number {
    return Math.max(0, (this.clockMs ?? Date.now()) - fence / 1_000);
  }

  /**
   * Connects, and resolves when each server was checked or did not answer in time: with the failures of the servers
   * that are of no use.
   */
  open(): Promise<readonly (Failure | undefined)[]> {
    return (this.#opening ??= this.membership.open().then((failures) => {
      this.#isOpen = true;
      return failures;
    }));
  }

  /** Sends a message by all servers to a process, or to all where none is named; rejects where no server took it. */
  async publish(text: string, process?: string): Promise<void> {
    const message = `note ${randomUUID()} ${text}`;
    const sent = await Promise.allSettled(this.servers.map(({ plain }) => plain.publish(this.commands.names, message, process)));
    try {
      throwIfAllFailed(sent);
    } catch (error) {
      throw isLockError(error) ? error : toLockError(error, '', undefined);
    }
  }

  /**
   * Asks all servers. Resolves with the first verdict of `judge` on the answers so far, of which `missing` more may
   * come, and rejects when too few servers can answer.
   */
  ask<T, V>(
    key: string,
    send: (server: QuorumServer) => Promise<T>,
    judge: (given: readonly T[], missing: number) => V | undefined,
  ): Promise<V> {
    return new Promise((resolve, reject) => {
      const given: T[] = [];
      const failures: Failure[] = [];
      let missing = this.servers.length;
      const consider = (): void => {
        missing--;
        const verdict = judge(given, missing);
        if (verdict !== undefined) {
          resolve(verdict);
        } else if (given.length + missing < this.majority || missing === 0) {
          reject(tooFew(key, this.servers.length, failures, given.length > 0));
        }
      };
      for (const server of this.servers) {
        send(server).then(
          (answer) => {
            given.push(answer);
            consider();
          },
          (error: unknown) => {
            failures.push({ server, error: asLockError(error, key) });
            consider();
          },
        );
      }
    });
  }

  close(): void {
    this.withdrawals.close();
    this.membership.close();
  }
}
