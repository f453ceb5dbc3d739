import { randomUUID } from 'node:crypto';
import { asLockError } from '../../core/background-releases.js';
import { OncePerKey } from '../../core/once-per-key.js';
import type { Quorum } from './quorum.js';

/** Sends messages by all servers, and delivers each of them once: every server that is there has a copy. */
export class MessagesOnce {
  readonly #known = new OncePerKey();
  #listeners: ((text: string) => void)[] = [];

  add(listener: (text: string) => void): void {
    this.#listeners.push(listener);
  }

  /** `id` is what its sender calls it. */
  readonly heard = (text: string, id: string): void => {
    if (this.#known.isNew(id)) {
      this.#listeners.forEach((listener) => listener(text));
    }
  };

  /** Rejects where no server took it. */
  async send({ servers }: Quorum, channel: string, text: string): Promise<void> {
    const message = `note ${randomUUID()} ${text}`;
    const sent = await Promise.allSettled(servers.map((server) => server.publish(channel, message)));
    const [first] = sent;
    if (first?.status === 'rejected' && sent.every(({ status }) => status === 'rejected')) {
      throw asLockError(first.reason, '');
    }
  }

  close(): void {
    this.#listeners = [];
  }
}
