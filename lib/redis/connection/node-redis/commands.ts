import { EventEmitter } from 'node:events';
import type { CommandWords, Connection, Pipeline } from '../connection.js';
import { keyIn } from './cluster-slots.js';

export type Words = readonly string[];

/** The commands of a connection, each sent as a list of words. The keys of a script get the prefix of the client. */
export abstract class NodeRedisCommands extends EventEmitter {
  status = 'wait';
  readonly options: Connection['options'];

  constructor(options: Connection['options']) {
    super();
    this.options = { enableOfflineQueue: true, ...options };
  }

  override on(event: string, listener: (...args: never[]) => void): this {
    return super.on(event, listener as (...args: unknown[]) => void);
  }

  /** Sends a command as it is, without a prefix. */
  abstract send(words: Words): Promise<unknown>;

  /**
   * Sends commands of one turn of the event loop, which node-redis writes in their order, on one connection. None of
   * them is sent on.
   */
  protected abstract sendTogether(commands: readonly Words[]): readonly Promise<unknown>[];

  call(...command: CommandWords): Promise<unknown> {
    return this.send(this.#wordsOf(command));
  }

  pipeline(commands: readonly CommandWords[]): Pipeline {
    return {
      exec: async () => {
        const replies = await Promise.allSettled(this.sendTogether(commands.map((command) => this.#wordsOf(command))));
        return replies.map((reply) => (reply.status === 'fulfilled' ? [null, reply.value] : [reply.reason as Error, undefined]));
      },
    };
  }

  publish(channel: string, message: string): Promise<unknown> {
    return this.send(['PUBLISH', channel, message]);
  }

  /** The third word of EVAL and EVALSHA says how many of the next are names of keys. */
  #wordsOf(command: CommandWords): Words {
    const words = command.map(String);
    const { keyPrefix = '' } = this.options;
    if (keyPrefix !== '' && keyIn(words) !== undefined) {
      for (let at = 3; at < 3 + Number(words[2]); at++) {
        words[at] = `${keyPrefix}${words[at]}`;
      }
    }
    return words;
  }
}
