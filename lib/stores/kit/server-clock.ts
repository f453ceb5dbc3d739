/** How much later than its sender's time limit a command may still be carried out, so that small steps of a clock refuse nothing. */
const SLACK_MS = 1_000;

/**
 * What a server's clock says, as far as its replies tell. A command that must not be carried out late names a time of that
 * clock: the network may keep it for longer than its sender waits, and than the server remembers that it was given up.
 */
export class ServerClock {
  #ahead: number | undefined;

  /** A reply to a command that was sent at `sentAt`, by the monotonic clock, says that the server's clock read `serverMs`. */
  read(serverMs: number, sentAt: number): void {
    // The server read its clock after `sentAt`: the estimate is too high by what the command was on its way, and refuses nothing in time.
    this.#ahead = serverMs - sentAt;
  }

  /** What the server's clock reads now, in ms since 1970; undefined where it has not told. */
  now(): number | undefined {
    return this.#ahead === undefined ? undefined : this.#ahead + performance.now();
  }

  /** Until when, in ms since 1970 by the server's clock, a command may be carried out that waits `limitMs` for its reply; 0 if unknown. */
  latest(sentAt: number, limitMs: number): number {
    return this.#ahead === undefined ? 0 : Math.ceil(this.#ahead + sentAt + limitMs + SLACK_MS);
  }
}
