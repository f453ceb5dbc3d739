import type { LockError } from '../core/words/errors.js';
import type { Place } from '../core/seam/lock-store.js';
import { Listeners } from '../kit/listeners.js';
import { Rechecks } from '../kit/rechecks.js';
import { isPassing } from './connection/redis-errors.js';
import type { RedisOrigin } from './connection/redis-source.js';
import { RedisSubscriber } from './connection/redis-subscriber.js';
import type { RedisKeys } from './scripts/redis-keys.js';

/** The messages of other processes to this one, and when to ask again where they may not arrive. */
export class Wakeups {
  readonly #origin: RedisOrigin;
  readonly #isCluster: boolean;
  readonly listeners = new Listeners();
  readonly #rechecks = new Rechecks();
  #subscriber: RedisSubscriber | undefined;

  constructor(origin: RedisOrigin, isCluster: boolean) {
    this.#origin = origin;
    this.#isCluster = isCluster;
  }

  /** Whether a subscription was begun. */
  get isOpen(): boolean {
    return this.#subscriber !== undefined;
  }

  /** Whether messages reach this process, as far as it knows. */
  get arrive(): boolean {
    return this.#subscriber?.acknowledged === true;
  }

  /**
   * Whether a process that receives no message is known to be gone. On a cluster, PUBLISH does not count all receivers.
   */
  get areCertain(): boolean {
    return this.#subscriber?.acknowledged === true && !this.#isCluster;
  }

  /**
   * Subscribes. `refused` is called where the server refuses the subscription, and `warn` where no connection can be
   * made at all.
   */
  open(keys: RedisKeys, process: string, refused: (error: Error) => void, warn: (message: string) => void): void {
    this.#subscriber?.close();
    this.#subscriber = new RedisSubscriber([keys.wake(process), keys.everybody], this.listeners, refused);
    this.#subscriber.open(this.#origin).catch((error: LockError) => warn(error.detail));
  }

  /** Commands have gone to another server. */
  follow(address: string): void {
    this.#subscriber?.follow(address);
  }

  /**
   * In how many milliseconds to ask again for a place at a rank of the queue; `joined` where the place is new in the
   * queue. On a cluster the subscriber finds out by itself that messages are lost, with messages to itself.
   */
  recheckMs(place: Place, rank: number, joined: boolean): number {
    return this.#rechecks.recheckMs(place, rank, joined && !this.#isCluster, this.#subscriber);
  }

  /** A grant took the place off the queue, also where the grant is undone. */
  granted(place: Place): void {
    this.#rechecks.forget(place);
  }

  /** Ends the subscription. */
  close(): void {
    this.#subscriber?.close();
    this.#subscriber = undefined;
  }
}

/**
 * Warns that a server refused a command that messages need; `untilThen` is a further effect of the refusal, for the
 * message. A connection that broke, or was closed meanwhile, is no refusal, and a refusal for a while says nothing of
 * rights.
 */
export function warnOfRefusal(error: Error, refused: string, keys: RedisKeys, untilThen: string, warn: (message: string) => void): void {
  if (error.name === 'ReplyError' && !isPassing(error)) {
    warn(
      `${refused} on ${keys.wake('*')}: ${error.message}. Grant the rights that docs/stores/redis.md lists under "The smallest ACL"; ` +
        `until then ${untilThen}a forced release is noticed at the next renewal.`,
    );
  }
}
