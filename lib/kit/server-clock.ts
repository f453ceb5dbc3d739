/**
 * How much later than its sender's time limit a command may still be carried out, in ms: small steps of a clock must
 * refuse nothing.
 */
const SLACK_MS = 1_000;

/**
 * An estimate of a server's clock, from its replies. A command that must not be carried out late names a time of that
 * clock: the network may keep it for longer than its sender waits, and for longer than its done mark stays.
 */
export class ServerClock {
  #ahead: number | undefined;
  #sentAt = -Infinity;

  /** Takes the time that a reply names; its command was sent at `sentAt`, by the monotonic clock. */
  read(serverMs: number, sentAt: number): void {
    // The server read its clock after `sentAt`: the estimate is too high by the time of travel, which is at most a
    // second, and never refuses a command in time. The lowest of several estimates would refuse some, after the
    // server's clock was set forward.
    this.#ahead = serverMs - sentAt;
    this.#sentAt = sentAt;
  }

  /** The present time of the server's clock, in ms since 1970; undefined before the first reply. */
  now(): number | undefined {
    return this.#ahead === undefined ? undefined : this.#ahead + performance.now();
  }

  /** Whether no reply has named a time for `ms` milliseconds: the server's clock may have been set back since. */
  isOlderThan(ms: number): boolean {
    return performance.now() - this.#sentAt > ms;
  }

  /**
   * The latest time of the server's clock, in ms since 1970, for a command that waits `limitMs` for its reply; 0 where
   * the server's clock is unknown.
   */
  latest(sentAt: number, limitMs: number): number {
    return this.#ahead === undefined ? 0 : Math.ceil(this.#ahead + sentAt + limitMs + SLACK_MS);
  }
}
