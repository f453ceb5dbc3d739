import type { Socket } from './redis-client.js';

/** The most commands that are sent in one system call: more would leave the server idle while this process works. */
const MOST_HELD = 8;

/** Sends the next few commands of one pass of the event loop together: under load, a system call for each costs most. */
export class Cork {
  #socket: Socket | undefined;
  #held = 0;

  /** Holds back the command that is written next. Not to be called for a command that is alone on its way: no other would come with it. */
  hold(socket: Socket | null | undefined): void {
    if (this.#socket && this.#held === MOST_HELD) {
      this.#release();
    }
    if (socket && !this.#socket) {
      this.#held = 0;
      this.#socket = socket;
      socket.cork();
      process.nextTick(this.#release);
    }
    this.#held++;
  }

  readonly #release = (): void => {
    this.#socket?.uncork();
    this.#socket = undefined;
  };
}
