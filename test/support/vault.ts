import { Inject, Injectable, type MessageEvent } from '@nestjs/common';
import { assertLocked, DistributedLock, LockService, MemoryLockStore, RedisLockStore, type LockErrorCode } from 'nestjs-distributed-lock';
import { hostname } from 'node:os';
import { Observable, of } from 'rxjs';

/** The errors of a `Vault`. */
export const KINDS = ['busy', 'away', 'lost', 'key', 'unlocked'] as const;
export type Kind = (typeof KINDS)[number];

export const CODES: Readonly<Record<Kind, LockErrorCode>> = {
  busy: 'LOCK_NOT_ACQUIRED',
  away: 'LOCK_STORE',
  lost: 'LOCK_LOST',
  key: 'LOCK_KEY',
  unlocked: 'LOCK_CONFIGURATION',
};
export const STATUSES: Readonly<Record<Kind, number>> = { busy: 423, away: 503, lost: 500, key: 500, unlocked: 500 };

/** Only developers may read these: the key, where it is held and by what, and what the driver says. */
const SECRETS = ['secret-key', hostname(), 'pid ', 'Vault.', 'ECONNREFUSED', '127.0.0.1'];

export function secretsIn(text: string): string[] {
  return SECRETS.filter((secret) => text.includes(secret));
}

/** A provider that fails by each error of a lock, with `vaultStores()`. Somebody has to hold `secret-key:1`. */
@Injectable()
export class Vault {
  constructor(@Inject(LockService) private readonly locks: LockService) {}

  async fail(kind: Kind): Promise<string> {
    switch (kind) {
      case 'busy':
        return this.busy('1');
      case 'away':
        return this.away('1');
      case 'lost':
        return this.lost('2');
      case 'key':
        return this.busy('');
      case 'unlocked':
        return String(assertLocked('secret-key').fence);
    }
  }

  @DistributedLock({ key: 'secret-key:<id>', wait: 0 })
  async busy(id: string): Promise<string> {
    return id;
  }

  @DistributedLock({ key: 'secret-key:<id>', wait: 0, store: 'away' })
  async away(id: string): Promise<string> {
    return id;
  }

  @DistributedLock({ key: 'secret-key:<id>', onBusy: 'skip' })
  skipped(id: string): Observable<string> {
    return of(id);
  }

  @DistributedLock('secret-key:<id>')
  async lost(id: string): Promise<string> {
    await this.locks.operations.forceRelease(`secret-key:${id}`, { fence: assertLocked(`secret-key:${id}`).fence });
    return id;
  }

  @DistributedLock({ key: 'secret-key:<id>', wait: 0 })
  watch(id: string): Observable<MessageEvent> {
    return new Observable((subscriber) => {
      subscriber.next({ data: id });
      setTimeout(() => void this.locks.operations.forceRelease(`secret-key:${id}`, { fence: assertLocked(`secret-key:${id}`).fence }), 20);
    });
  }
}

/** The store `away` never answers. */
export function vaultStores(): Record<string, MemoryLockStore | RedisLockStore> {
  return { default: new MemoryLockStore(), away: new RedisLockStore('redis://127.0.0.1:1') };
}
