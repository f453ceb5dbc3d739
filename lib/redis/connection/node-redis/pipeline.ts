import type { Argument } from '../../scripts/script.js';
import type { Pipeline } from '../connection.js';
import type { NodeRedisCommands, Words } from './commands.js';

/** Commands of one turn of the event loop, which node-redis writes in their order, and sends on one connection. */
export class NodeRedisPipeline implements Pipeline {
  readonly #connection: NodeRedisCommands;
  readonly #sendTo: (commands: readonly Words[]) => (words: Words) => Promise<unknown>;
  readonly #commands: Words[] = [];

  /** `sendTo` says where all of the commands go. */
  constructor(connection: NodeRedisCommands, sendTo: (commands: readonly Words[]) => (words: Words) => Promise<unknown>) {
    this.#connection = connection;
    this.#sendTo = sendTo;
  }

  evalsha(sha: string, ...parameters: readonly Argument[]): this {
    return this.#add(this.#connection.scriptWords('evalsha', sha, parameters));
  }

  eval(source: string, ...parameters: readonly Argument[]): this {
    return this.#add(this.#connection.scriptWords('eval', source, parameters));
  }

  call(command: string, ...words: readonly Argument[]): this {
    return this.#add([command, ...words.map(String)]);
  }

  async exec(): Promise<(readonly [Error | null, unknown])[]> {
    const replies = await Promise.allSettled(this.#commands.map(this.#sendTo(this.#commands)));
    return replies.map((reply) => (reply.status === 'fulfilled' ? [null, reply.value] : [reply.reason as Error, undefined]));
  }

  #add(words: Words): this {
    this.#commands.push(words);
    return this;
  }
}
