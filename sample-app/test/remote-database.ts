import { setTimeout as sleep } from 'node:timers/promises';
import { PgliteDatabase } from '../src/database/pglite.database.js';

/**
 * PGlite with the round trip of a server. PGlite itself answers before the event loop goes on to the next request, so that
 * requests would take turns even without a lock.
 */
export class RemoteDatabase extends PgliteDatabase {
  protected override async run(...statement: Parameters<PgliteDatabase['run']>): Promise<readonly unknown[]> {
    await sleep(1);
    return super.run(...statement);
  }
}
