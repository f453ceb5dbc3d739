import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection } from './connection.js';
import { readCredentials, type CredentialsFunction, type RedisCredentials } from './credentials.js';

/** Returns the current user and password. The options of ioredis call it each time that they are read. */
export type CurrentOptions = () => Readonly<Record<string, unknown>> | undefined;

const NAMES = ['username', 'password', 'sentinelUsername', 'sentinelPassword'] as const;
/** After how many milliseconds the function is asked again that failed. */
const AGAIN_MS = 1_000;

/** Options of ioredis that have user and password as they are now, and not as they were when the client was made. */
export function keepCurrent<T extends object>(options: T, current: CurrentOptions): T {
  for (const name of NAMES) {
    const first = (options as Readonly<Record<string, unknown>>)[name];
    Object.defineProperty(options, name, { get: () => current()?.[name] ?? first, enumerable: true, configurable: true });
  }
  return options;
}

/**
 * The user and password of the connections that one client makes, from a function that is asked before each connection.
 */
export class ReadCredentials {
  readonly #credentials: CredentialsFunction;
  /**
   * The credentials of the last answer. Connections that a Cluster makes by itself, for the slots or to subscribe, have
   * these.
   */
  current: ReturnType<CurrentOptions>;
  /** The answer that is on its way. */
  #asked: Promise<RedisCredentials> | undefined;

  constructor(credentials: CredentialsFunction) {
    this.#credentials = credentials;
  }

  /** Has a client ask before it connects, and again where that failed, until it is closed. */
  askBefore(connection: Connection, isClosed: () => boolean): void {
    const connect = connection.connect.bind(connection);
    let asking: Promise<void> | undefined;
    const ask = async (): Promise<void> => {
      for (let answered = false; !answered && !isClosed();) {
        answered = await this.#ask(connection);
        await (answered || sleep(AGAIN_MS, undefined, { ref: false }));
      }
      asking = undefined;
      await (isClosed() || connect());
    };
    connection.connect = () => (asking ??= ask());
    this.#askBeforeSlots(connection);
  }

  /** ioredis asks for the nodes of slots on a connection of its own, also where the connection to a node has ended. */
  #askBeforeSlots(connection: Connection): void {
    const refresh = connection.refreshSlotsCache?.bind(connection);
    if (refresh) {
      connection.refreshSlotsCache = (...callback) => void this.#ask(connection).then(() => refresh(...callback));
    }
  }

  /** Answers whether the function did; tells the connection why not. */
  async #ask(connection: Connection): Promise<boolean> {
    try {
      this.current = { ...(await (this.#asked ??= readCredentials(this.#credentials))) };
      return true;
    } catch (error) {
      connection.emit('error', error);
      return false;
    } finally {
      this.#asked = undefined;
    }
  }
}
