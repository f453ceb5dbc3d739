import type { Argument } from '../scripts/script.js';
import type { Pipeline } from './connection.js';

/** Commands of one turn of the event loop, which node-redis writes in their order, and sends on one connection. */
export class NodeRedisPipeline implements Pipeline {
  readonly #send: (words: readonly string[]) => Promise<unknown>;
  readonly #commands: (readonly string[])[] = [];

  constructor(send: (words: readonly string[]) => Promise<unknown>) {
    this.#send = send;
  }

  evalsha(sha: string, ...parameters: readonly Argument[]): this {
    return this.#add('evalsha', sha, ...parameters);
  }

  eval(source: string, ...parameters: readonly Argument[]): this {
    return this.#add('eval', source, ...parameters);
  }

  wait(replicas: number, ms: number): this {
    return this.#add('WAIT', replicas, ms);
  }

  publish(channel: string, message: string): this {
    return this.#add('PUBLISH', channel, message);
  }

  asking(): this {
    return this.#add('ASKING');
  }

  ping(): this {
    return this.#add('PING');
  }

  async exec(): Promise<(readonly [Error | null, unknown])[]> {
    const replies = await Promise.allSettled(this.#commands.map((words) => this.#send(words)));
    return replies.map((reply) => (reply.status === 'fulfilled' ? [null, reply.value] : [reply.reason as Error, undefined]));
  }

  #add(...words: readonly Argument[]): this {
    this.#commands.push(words.map(String));
    return this;
  }
}
