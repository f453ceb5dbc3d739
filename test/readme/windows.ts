import { Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-distributed-lock';
import { EventEmitter } from 'node:events';

@Injectable()
export class SearchIndex {
  /** An event for each run that has begun. */
  readonly begun = new EventEmitter<{ rebuild: [string] }>();

  @DistributedLock({ key: 'index:<shop>', onBusy: 'skip', minHold: '5m', ttl: '5m' })
  async rebuild(shop: string): Promise<string | undefined> {
    this.begun.emit('rebuild', shop);
    if (shop === 'fails') {
      throw new Error('the index is full');
    }
    if (shop === 'hangs') {
      await new Promise(() => undefined);
    }
    return 'rebuilt';
  }
}
