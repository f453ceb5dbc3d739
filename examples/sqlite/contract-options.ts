import Database from 'libsql';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StoreContractOptions } from 'nestjs-distributed-lock/store-contract';
import { SqliteLockStore } from './sqlite-lock-store.js';

const path = join(mkdtempSync(join(tmpdir(), 'sqlite-locks-')), 'locks.db');

/** The options of the suite for this store. */
export const contractOptions: StoreContractOptions = {
  connect: () => new SqliteLockStore(path),
  offers: ['open', 'tickets'],
  stall,
  timeScale: 2,
};

/** Keeps all others from writing for so long. */
async function stall(ms: number): Promise<void> {
  const database = new Database(path);
  database.exec('BEGIN IMMEDIATE');
  await sleep(ms);
  database.exec('ROLLBACK');
  database.close();
}
