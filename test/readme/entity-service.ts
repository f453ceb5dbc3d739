import { currentLock, DistributedLock, lockKey } from 'nestjs-distributed-lock';

/** The keys that `EntityService.update` was in. */
export const locked: string[] = [];

export abstract class EntityService {
  abstract readonly entity: string;

  @DistributedLock({
    key(this: EntityService, id: string) {
      return lockKey`${this.entity}:${id}`;
    },
    signal: (_id: string, client: AbortSignal) => client,
  })
  async update(id: string, client: AbortSignal): Promise<void> {
    locked.push(...(currentLock()?.keys ?? []));
    await Promise.resolve([id, client]);
  }
}
