import { Inject, Injectable } from '@nestjs/common';
import { DistributedLock, DistributedSemaphore } from 'nestjs-distributed-lock';
import { setTimeout as sleep } from 'node:timers/promises';
import { DemoSettings } from './demo-settings.js';
import { SHARED_BALANCE, type SharedBalance } from './shared-balance.js';
import { ADDED, PERMITS, type TaskKind, type TaskOrder, type TaskRecord } from './task.js';

type Run = Omit<TaskRecord, 'task' | 'process' | 'arrivedAt'>;

/**
 * One piece of work in two methods: `addLocked` differs from `add` by one line. And another one that several may do at
 * once.
 */
@Injectable()
export class DemoService {
  constructor(
    @Inject(DemoSettings) private readonly settings: DemoSettings,
    @Inject(SHARED_BALANCE) private readonly balance: SharedBalance,
  ) {}

  async run({ task, kind }: TaskOrder): Promise<TaskRecord> {
    const { account, process } = this.settings;
    const arrivedAt = Date.now();
    const run = await this.#begin(kind, account);
    return { task, process, arrivedAt, ...run };
  }

  #begin(kind: TaskKind, account: string): Promise<Run> {
    switch (kind) {
      case 'unlocked':
        return this.add(account);
      case 'locked':
        return this.addLocked(account);
      case 'limited':
        return this.call(account);
    }
  }

  @DistributedLock({ key: 'demo:<account>', ttl: '2s', wait: '30s' })
  protected async addLocked(account: string): Promise<Run> {
    return this.add(account);
  }

  protected async add(account: string): Promise<Run> {
    const startedAt = Date.now();
    const read = await this.balance.read(account);
    await sleep(this.settings.workMs);
    const wrote = read + ADDED;
    await this.balance.write(account, wrote);
    return { startedAt, endedAt: Date.now(), read, wrote };
  }

  @DistributedSemaphore({ key: 'demo-service:<0>', permits: PERMITS, ttl: '2s', wait: '30s' })
  protected async call(_account: string): Promise<Run> {
    const startedAt = Date.now();
    await sleep(this.settings.workMs);
    return { startedAt, endedAt: Date.now() };
  }
}
