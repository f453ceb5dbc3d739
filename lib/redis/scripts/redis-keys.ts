import { percentEscape } from '../../core/words/lock-key.js';
import { slotTag } from './slot-tags.js';

// eslint-disable-next-line no-control-regex -- it is there to find control characters
const UNSAFE = /[%{}\u0000-\u001f\u007f]/g;

/**
 * The names of a store's keys and channels: prefix, kind, then the key in braces, so that the Redis keys of a lock
 * share one slot.
 */
export class RedisKeys {
  readonly prefix: string;
  readonly #cluster: boolean;

  constructor(prefix: string, cluster: boolean) {
    this.prefix = prefix;
    this.#cluster = cluster;
  }

  /** The key as it stands in the names: in braces; its own braces, `%` and control characters percent-escaped. */
  tag(key: string): string {
    return `{${key.replace(UNSAFE, percentEscape)}}`;
  }

  lock(tag: string): string {
    return `${this.prefix}:lock:${tag}`;
  }

  queue(tag: string): string {
    return `${this.prefix}:queue:${tag}`;
  }

  done(tag: string, hold: string): string {
    return `${this.prefix}:done:${hold}:${tag}`;
  }

  /** One counter for each server; on a cluster one for each slot, since a script's keys must share a slot. */
  fence(tag: string): string {
    return `${this.prefix}:fence:{${this.#cluster ? slotTag(tag.slice(1, -1)) : '0'}}`;
  }

  /** The pattern by which SCAN finds locks, in a database where the client puts a prefix before keys. */
  lockPattern(clientPrefix: string): string {
    return `${(clientPrefix + this.lock('{')).replace(/[\\*?[\]]/g, '\\$&')}*`;
  }

  /** The key that a name of a lock is for. */
  keyOf(lock: string, clientPrefix: string): string {
    const escaped = lock.slice(clientPrefix.length + this.lock('{').length, -1);
    return escaped.replace(/%([0-9A-F]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
  }

  /** The channel of all processes: no process is called so. */
  get everybody(): string {
    return this.wake('all');
  }

  /** The channel of a process. With '', the prefix to which the name of a process is appended. */
  wake(process: string): string {
    return `${this.prefix}:wake:${process}`;
  }
}
