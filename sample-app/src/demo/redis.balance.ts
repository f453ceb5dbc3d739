import { Redis } from 'ioredis';
import { hostOf } from '../lock-place.js';
import { StartUpError } from '../start-up.error.js';
import type { SharedBalance } from './shared-balance.js';

/** A plain GET and a plain SET, for tasks in several processes. */
export class RedisBalance implements SharedBalance {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async read(account: string): Promise<number> {
    return Number(await this.#redis.get(`demo-balance:${account}`));
  }

  /** The demo leaves nothing behind for longer than a minute. */
  async write(account: string, amount: number): Promise<void> {
    await this.#redis.set(`demo-balance:${account}`, amount, 'EX', 60);
  }

  onApplicationShutdown(): void {
    this.#redis.disconnect();
  }
}

/** Throws `StartUpError` where there is no server. */
export async function connectRedisBalance(url: string, variable: string): Promise<RedisBalance> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  let reason: Error | undefined;
  redis.on('error', (error: Error) => {
    reason = error;
  });
  try {
    await redis.connect();
  } catch (error) {
    const { message } = reason ?? (error as Error);
    throw new StartUpError(`Redis at ${hostOf(url)}: ${message}. Check ${variable}, or leave it out.`, { cause: error });
  }
  return new RedisBalance(redis);
}
