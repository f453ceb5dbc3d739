import type { Socket } from './redis-client.js';

/** Commands that are sent in one system call: more would keep the server idle while this process works. */
const MOST_HELD = 8;

/** Sends the next few commands of a turn of the event loop together: a system call each is what costs most under load. */
export class Cork {
  #socket: Socket | undefined;
  #held = 0;

  /** Holds the command back that is written next. One that is alone on its way must not be: nothing would come with it. */
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
