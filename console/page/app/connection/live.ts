import type { ConnectionStatus } from '../model/state.js';
import { addressOf } from './addresses.js';
import { completed } from './completed.js';
import { follow, type Followed } from './follow.js';
import { messageIn } from './messages.js';
import type { PageInfo } from '../../snapshot.js';

/**
 * A stream that was silent for this long is not trusted any more, in milliseconds: surveys come every two to three
 * seconds.
 */
const SILENCE_MS = 7_000;
/** How often that is looked at, and how often the server is polled instead, in milliseconds. */
const LOOK_MS = 2_000;
/** How often a stream is opened anew that the browser has given up, in milliseconds. */
const REOPEN_MS = 10_000;

/** Is notified of the connection. */
export interface LiveListener {
  info(info: PageInfo): void;
  survey(survey: Followed): void;
  status(status: ConnectionStatus): void;
}

/** Keeps surveys coming while the page is visible: by a stream, or by polling where the stream does not work. */
export class Live {
  readonly #listener: LiveListener;
  #stream: EventSource | undefined;
  #openedAt = 0;
  /** When the stream said something. */
  #heardAt = 0;
  #timer: number | undefined;
  #isPolling = false;
  /** The last survey of the stream. */
  #last: Followed | undefined;

  constructor(listener: LiveListener) {
    this.#listener = listener;
  }

  start(): void {
    document.addEventListener('visibilitychange', () => (document.hidden ? this.#pause() : this.#open()));
    this.#open();
  }

  #open(): void {
    if (this.#timer === undefined) {
      this.#listener.status('connecting');
      this.#timer = window.setInterval(() => this.#look(), LOOK_MS);
      this.#heardAt = Date.now();
      this.#connect();
    }
  }

  /** A browser has few connections to a server: a page that nobody sees gives its own back. */
  #pause(): void {
    this.#stop();
    this.#listener.status('paused');
  }

  #stop(): void {
    window.clearInterval(this.#timer);
    this.#timer = undefined;
    this.#stream?.close();
  }

  #connect(): void {
    this.#stream?.close();
    this.#openedAt = Date.now();
    const stream = new EventSource(addressOf('events'));
    this.#stream = stream;
    stream.addEventListener('message', ({ data }: MessageEvent<string>) => {
      this.#heardAt = Date.now();
      this.#take(data, 'live');
    });
    stream.addEventListener('error', () => {
      // The browser says no more than that; the survey tells a session that has ended from a server that is away.
      if (stream.readyState === EventSource.CLOSED && stream === this.#stream) {
        this.#heardAt = 0;
        this.#look();
      }
    });
  }

  #look(): void {
    if (Date.now() - this.#heardAt < SILENCE_MS) {
      return;
    }
    if (Date.now() - this.#openedAt >= REOPEN_MS) {
      this.#connect();
    }
    void this.#poll();
  }

  async #poll(): Promise<void> {
    if (this.#isPolling) {
      return;
    }
    this.#isPolling = true;
    try {
      const response = await fetch(addressOf('survey'), { signal: AbortSignal.timeout(10_000), redirect: 'manual' });
      if (response.status === 401 || response.status === 403 || response.type === 'opaqueredirect') {
        this.#stop();
        this.#listener.status('expired');
      } else if (response.ok) {
        const messages: unknown = await response.json();
        for (const message of Array.isArray(messages) ? messages : []) {
          this.#take(JSON.stringify(message), 'polling');
        }
      } else {
        this.#listener.status('broken');
      }
    } catch {
      this.#listener.status('broken');
    } finally {
      this.#isPolling = false;
    }
  }

  #take(text: string, status: 'live' | 'polling'): void {
    const message = messageIn(text);
    if (!message || this.#timer === undefined) {
      return;
    }
    this.#listener.status(status);
    if (message.kind === 'page') {
      this.#listener.info(message);
    } else if ('stores' in message) {
      const survey = follow(this.#last, completed(message), Date.now());
      if (status === 'live') {
        this.#last = survey;
      }
      if (survey) {
        this.#listener.survey(survey);
      } else {
        // The stream has lost a message; the next one begins with a whole survey.
        this.#connect();
      }
    }
  }
}
