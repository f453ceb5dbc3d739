import { EventEmitter } from 'node:events';
import type { Argument } from '../../scripts/script.js';
import type { Connection } from '../connection.js';

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

  evalsha(sha: string, ...parameters: readonly Argument[]): Promise<unknown> {
    return this.send(this.scriptWords('evalsha', sha, parameters));
  }

  eval(source: string, ...parameters: readonly Argument[]): Promise<unknown> {
    return this.send(this.scriptWords('eval', source, parameters));
  }

  call(command: string, ...words: readonly Argument[]): Promise<unknown> {
    return this.send([command, ...words.map(String)]);
  }

  publish(channel: string, message: string): Promise<unknown> {
    return this.send(['PUBLISH', channel, message]);
  }

  /** The words of EVAL or EVALSHA, whose first parameter is how many of the next are names of keys. */
  scriptWords(how: 'eval' | 'evalsha', script: string, parameters: readonly Argument[]): Words {
    const words = parameters.map(String);
    const { keyPrefix = '' } = this.options;
    if (keyPrefix !== '') {
      for (let at = 1; at <= Number(words[0]); at++) {
        words[at] = `${keyPrefix}${words[at]}`;
      }
    }
    return [how, script, ...words];
  }
}
