import { Injectable } from '@nestjs/common';
import { CronExpression } from '@nestjs/schedule';
import { CronJob } from 'cron';
import { Leader, LockService, type Candidate, type Lock } from 'nestjs-distributed-lock';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Feed {
  next(options: { signal: AbortSignal }): Promise<readonly string[]>;
  apply(changes: readonly string[], fence: number): Promise<void>;
  subscribe(): { close(): void };
}

@Injectable()
export class FeedReader {
  constructor(private readonly feed: Feed) {}

  @Leader('feed-reader')
  async read({ signal, fence }: Lock): Promise<void> {
    while (!signal.aborted) {
      const changes = await this.feed.next({ signal });
      await this.feed.apply(changes, fence);
    }
  }
}

@Injectable()
export class FeedListener {
  constructor(private readonly feed: Feed) {}

  @Leader({ key: 'feed-listener', ttl: '5s' })
  async listen({ signal }: Lock): Promise<void> {
    const subscription = this.feed.subscribe();
    try {
      if (!signal.aborted) {
        await once(signal, 'abort');
      }
    } finally {
      subscription.close();
    }
  }
}

@Injectable()
export class Prices {
  constructor(private readonly feed: Feed) {}

  @Leader('prices')
  async schedule(lock: Lock): Promise<void> {
    const onTick = (): Promise<void> => this.refresh(lock);
    const job = CronJob.from({ cronTime: CronExpression.EVERY_SECOND, onTick, start: true, waitForCompletion: true });
    if (!lock.signal.aborted) {
      await once(lock.signal, 'abort');
    }
    await job.stop();
  }

  private async refresh({ signal, fence }: Lock): Promise<void> {
    await this.feed.apply(await this.feed.next({ signal }), fence);
  }
}

export class Elections {
  constructor(
    private readonly locks: LockService,
    private readonly feed: Feed,
  ) {}

  async byHand(): Promise<void> {
    const candidate = this.locks.lead('sweeper', async (lock) => {
      while (!lock.signal.aborted) {
        await this.sweep(lock);
        await sleep(60_000, undefined, { signal: lock.signal }).catch(() => undefined);
      }
    });
    this.report(candidate.isLeader());
    await candidate.stop();
  }

  async while(): Promise<void> {
    await using candidate: Candidate = this.locks.lead('sweeper', (lock) => this.sweep(lock), { pause: '30s' });
    this.report(candidate.isLeader());
  }

  async sweep({ fence }: Lock): Promise<void> {
    await this.feed.apply([], fence);
  }

  private report(..._what: unknown[]): void {}
}
