import { Inject, Injectable } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { DistributedLock } from 'nestjs-distributed-lock';

/** Provides the client of the cache. */
export const CACHE = 'cache';
/** Provides the address of the bank. */
export const BANK = 'bank';

@Injectable()
export class Rates {
  constructor(
    @Inject(CACHE) private readonly cache: Redis,
    @Inject(BANK) private readonly bank: string,
  ) {}

  async latest(currency: string): Promise<string> {
    return (await this.cache.get(`rate:${currency}`)) ?? this.fetchOnce(currency);
  }

  @DistributedLock({ key: 'rate:<currency>', wait: '30s' })
  async fetchOnce(currency: string): Promise<string> {
    const cached = await this.cache.get(`rate:${currency}`); // by the call that this one waited for
    if (cached !== null) {
      return cached;
    }
    const rate = await this.fetchRate(currency);
    await this.cache.set(`rate:${currency}`, rate, 'PX', 60_000);
    return rate;
  }

  private async fetchRate(currency: string): Promise<string> {
    const response = await fetch(`${this.bank}/${currency}`);
    if (!response.ok) {
      throw new Error(`the bank answers ${response.status}`);
    }
    return response.text();
  }
}
