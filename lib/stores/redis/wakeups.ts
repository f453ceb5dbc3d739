import type { LockError } from '../../core/errors.js';
import type { ForcedListener, Place, TurnListener } from '../../core/lock-store.js';
import { RECHECK_MS } from '../kit/protocol.js';
import type { RedisSource } from './redis-client.js';
import { RedisSubscriber } from './redis-subscriber.js';

/** What other processes tell this one, and how often to look where they may not be heard. */
export class Wakeups {
  readonly #source: RedisSource;
  readonly #isCluster: boolean;
  #forced: ForcedListener[] = [];
  #listeners: TurnListener[] = [];
  /** Places that the queue is known to have, and those that it lost without a message: whoever has one of these looks often. */
  readonly #places = new WeakMap<Place, 'queued' | 'passed over'>();
  #subscriber: RedisSubscriber | undefined;

  constructor(source: RedisSource, isCluster: boolean) {
    this.#source = source;
    this.#isCluster = isCluster;
  }

  /** Whether a subscription was begun. */
  get isOpen(): boolean {
    return this.#subscriber !== undefined;
  }

  /** Whether a process that nobody heard is known to be gone. Nobody is told on a cluster whether a message was heard. */
  get areCertain(): boolean {
    return !this.#isCluster && this.#subscriber?.acknowledged === true;
  }

  onForced(listener: ForcedListener): void {
    this.#forced.push(listener);
  }

  onTurn(listener: TurnListener): void {
    this.#listeners.push(listener);
  }

  /** Begins to listen; `warn` is told where that fails for good. */
  open(channel: string, refused: (error: Error) => void, warn: (message: string) => void): void {
    this.#subscriber?.close();
    this.#subscriber = new RedisSubscriber(channel, {
      message: (message) => this.#heard(message),
      changed: () => {
        for (const listener of this.#listeners) {
          listener.recheck();
        }
      },
      refused,
    });
    this.#subscriber.open(this.#source).catch((error: LockError) => warn(error.detail));
  }

  /** Commands have gone to another server. */
  follow(address: string): void {
    this.#subscriber?.follow(address);
  }

  /** When to look again for a place that has a rank in the queue, in milliseconds; `joined` where it is new there. */
  recheckMs(place: Place, rank: number, joined: boolean): number {
    const known = this.#places.get(place);
    if (joined && known && !this.#isCluster) {
      // It was skipped, or not told of its turn. On a cluster the subscriber finds out by itself, with messages to itself.
      this.#places.set(place, 'passed over');
      this.#subscriber?.distrust();
    } else if (!known) {
      this.#places.set(place, 'queued');
    }
    const soon = rank < 2 || !this.#subscriber?.acknowledged || this.#places.get(place) === 'passed over';
    return soon ? RECHECK_MS.soon : RECHECK_MS.late;
  }

  /** A grant took the place off the queue, also where it is undone. */
  granted(place: Place): void {
    this.#places.delete(place);
  }

  close(): void {
    this.#subscriber?.close();
    this.#subscriber = undefined;
    this.#forced = [];
    this.#listeners = [];
  }

  #heard(message: string): void {
    const [, kind, value = '', key = ''] = /^(\w+) (\S+) (.*)$/s.exec(message) ?? [];
    if (kind === 'turn') {
      for (const listener of this.#listeners) {
        listener.turn(key, value);
      }
    } else if (kind === 'forced') {
      for (const listener of this.#forced) {
        listener(key, Number(value));
      }
    }
  }
}
