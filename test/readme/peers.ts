/** The code of docs/operations/listing.md and deadlocks.md. */
import { LockModule, type LockOperations, type LockStore } from 'nestjs-distributed-lock';

export class Operators {
  constructor(private readonly locks: LockOperations) {}

  async print(): Promise<void> {
    const list = this.locks.list({ prefix: 'balance:', limit: 100 });
    for await (const lock of list) {
      console.log(lock.key, lock.by, lock.since, lock.fence, lock.waiters, lock.answers);
    }
    console.log(list.leftOut); // { rows: 0, limited: false, unsearched: false }
  }
}

export function modules(store: LockStore): unknown[] {
  return [
    LockModule.forRoot({ store, deadlocks: { after: '1s' } }), // the default
    LockModule.forRoot({ store, deadlocks: false }),
  ];
}
