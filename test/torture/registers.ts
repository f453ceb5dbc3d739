import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HistoryFile } from './history.js';

/** KEYS register · ARGV fence. The value, or nil for a fence that is too old. */
const CLAIM = `
if tonumber(redis.call('HGET', KEYS[1], 'fence') or 0) > tonumber(ARGV[1]) then
  return nil
end
redis.call('HSET', KEYS[1], 'fence', ARGV[1])
return redis.call('HGET', KEYS[1], 'value') or '0'
`;
/** KEYS register · ARGV fence, value. 1, or 0 where a higher fence has claimed it. */
const WRITE = `
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'value', ARGV[2])
return 1
`;

/**
 * Two counters for each key, on a server that no fault strikes, which are read, and written after a while: one claims
 * the fence and refuses lower fences; the other, the control, takes every write.
 */
export class Registers {
  readonly #redis: Redis;
  readonly #history: HistoryFile | undefined;

  constructor(url: string, history?: HistoryFile) {
    this.#redis = new Redis(url);
    this.#history = history;
  }

  /** Adds one to both, with a pause between reading and writing. */
  async increment(key: string, owner: string, fence: number, pauseMs: number): Promise<void> {
    const claimed = await this.#redis.eval(CLAIM, 1, claimedName(key), fence);
    const plain = Number(await this.#redis.get(plainName(key)));
    await sleep(pauseMs);
    if (claimed !== null) {
      const subject = { op: 'write', register: 'claimed', key, owner, fence } as const;
      this.#history?.write({ ...subject, phase: 'invoke' });
      const written = await this.#redis.eval(WRITE, 1, claimedName(key), fence, Number(claimed) + 1);
      this.#history?.write({ ...subject, phase: written === 1 ? 'ok' : 'fail' });
    }
    const subject = { op: 'write', register: 'plain', key, owner } as const;
    this.#history?.write({ ...subject, phase: 'invoke' });
    await this.#redis.set(plainName(key), plain + 1);
    this.#history?.write({ ...subject, phase: 'ok' });
  }

  async read(key: string): Promise<{ claimed: number; plain: number }> {
    const [claimed, plain] = await Promise.all([this.#redis.hget(claimedName(key), 'value'), this.#redis.get(plainName(key))]);
    return { claimed: Number(claimed ?? 0), plain: Number(plain ?? 0) };
  }

  close(): void {
    this.#redis.disconnect();
  }
}

function claimedName(key: string): string {
  return `claimed ${key}`;
}

function plainName(key: string): string {
  return `plain ${key}`;
}
