import type { Argument } from '../../scripts/script.js';
import type { Pipeline } from '../connection.js';

export type Send = (words: readonly string[]) => Promise<unknown>;

/** Commands of one turn of the event loop, which node-redis writes in their order, and sends on one connection. */
export class NodeRedisPipeline implements Pipeline {
  readonly #sendTo: (commands: readonly (readonly string[])[]) => Send;
  readonly #keyPrefix: string;
  readonly #commands: (readonly string[])[] = [];

  /** `sendTo` says where all of the commands go. */
  constructor(sendTo: (commands: readonly (readonly string[])[]) => Send, keyPrefix: string) {
    this.#sendTo = sendTo;
    this.#keyPrefix = keyPrefix;
  }

  evalsha(sha: string, ...parameters: readonly Argument[]): this {
    return this.#add(scriptWords('evalsha', sha, parameters, this.#keyPrefix));
  }

  eval(source: string, ...parameters: readonly Argument[]): this {
    return this.#add(scriptWords('eval', source, parameters, this.#keyPrefix));
  }

  wait(replicas: number, ms: number): this {
    return this.#add(['WAIT', String(replicas), String(ms)]);
  }

  publish(channel: string, message: string): this {
    return this.#add(['PUBLISH', channel, message]);
  }

  asking(): this {
    return this.#add(['ASKING']);
  }

  ping(): this {
    return this.#add(['PING']);
  }

  async exec(): Promise<(readonly [Error | null, unknown])[]> {
    const send = this.#sendTo(this.#commands);
    const replies = await Promise.allSettled(this.#commands.map(send));
    return replies.map((reply) => (reply.status === 'fulfilled' ? [null, reply.value] : [reply.reason as Error, undefined]));
  }

  #add(words: readonly string[]): this {
    this.#commands.push(words);
    return this;
  }
}

/** The words of EVAL or EVALSHA, whose first parameter is how many of the next are names of keys. */
export function scriptWords(how: 'eval' | 'evalsha', script: string, parameters: readonly Argument[], keyPrefix: string): string[] {
  const words = parameters.map(String);
  if (keyPrefix !== '') {
    for (let at = 1; at <= Number(words[0]); at++) {
      words[at] = `${keyPrefix}${words[at]}`;
    }
  }
  return [how, script, ...words];
}
