import type { OnApplicationShutdown } from '@nestjs/common';
import { Redis } from 'ioredis';
import { StartUpError } from '../start-up.error.js';

/** The balances that the tasks change, in hundredths. It knows nothing of locks. */
export interface SharedBalance {
  read(account: string): Promise<number>;
  write(account: string, amount: number): Promise<void>;
}

export const SHARED_BALANCE = Symbol('SharedBalance');

/** A plain GET and a plain SET, for tasks in several processes. */
export class RedisBalance implements SharedBalance, OnApplicationShutdown {
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
export async function connectBalance(redisUrl: string): Promise<RedisBalance> {
  const redis = new Redis(redisUrl, { lazyConnect: true, retryStrategy: () => null });
  let reason: Error | undefined;
  redis.on('error', (error: Error) => {
    reason = error;
  });
  try {
    await redis.connect();
  } catch (error) {
    const { message } = reason ?? (error as Error);
    throw new StartUpError(`Redis at ${new URL(redisUrl).host}: ${message}. Check REDIS_URL, or leave it out.`, { cause: error });
  }
  return new RedisBalance(redis);
}

/** A variable for each account, for tasks in one process. */
export class VariableBalance implements SharedBalance {
  readonly #amounts = new Map<string, number>();

  async read(account: string): Promise<number> {
    return this.#amounts.get(account) ?? 0;
  }

  async write(account: string, amount: number): Promise<void> {
    this.#amounts.set(account, amount);
  }
}
