import { setTimeout as sleep } from 'node:timers/promises';
import { MySqlLockStore } from '../../lib/mysql/index';
import { MySqlServer } from '../support/mysql-server';
import { makeLocks } from '../support/make-locks';
import { until } from '../support/until';

const KEYS = 50;
const ROUNDS = 1_200;

/** Old versions of rows that nobody has purged yet. */
async function oldVersions(server: MySqlServer): Promise<number> {
  const [row] = await server.query<{ count: number }>(
    `SELECT count FROM information_schema.innodb_metrics WHERE name = 'trx_rseg_history_len'`,
  );
  return Number(row?.count);
}

test('sixty thousand pairs beside an idle transaction leave the time of a pair as it was, and what they leave is purged after it', async () => {
  const server = await MySqlServer.start();
  const store = new MySqlLockStore(server.pool());
  await store.ensureSchema();
  await store.open({ prefix: 'lock', warn: () => undefined });
  const locks = makeLocks(store);
  const pair = (at: number): Promise<unknown> => locks.withLock(`k${at % KEYS}`, () => undefined);
  const everyKey = (): Promise<unknown> => Promise.all(Array.from({ length: KEYS }, (_, at) => pair(at)));
  const medianMs = async (): Promise<number> => {
    const times: number[] = [];
    for (let at = 0; at < 300; at++) {
      const startedAt = performance.now();
      await pair(at);
      times.push(performance.now() - startedAt);
    }
    return times.toSorted((one, other) => one - other)[150] as number;
  };
  await everyKey();
  const before = await medianMs();
  const idle = await server.pool().promise().getConnection();
  await idle.query('START TRANSACTION WITH CONSISTENT SNAPSHOT');
  for (let round = 0; round < ROUNDS; round++) {
    await everyKey();
  }
  // The pages that were written are still on their way to the disk.
  let after = 0;
  await until('that a pair takes no longer than before', async () => (after = await medianMs()) < 3 * before + 1, 60_000);
  const kept = await oldVersions(server);
  console.log(
    `A pair takes ${before.toFixed(2)} ms before, and ${after.toFixed(2)} ms after ${KEYS * ROUNDS}, of which ${kept} versions stay.`,
  );
  expect(kept).toBeGreaterThan(KEYS * ROUNDS);
  await idle.query('COMMIT');
  await until('the purge', async () => (await sleep(200)) === undefined && (await oldVersions(server)) < kept / 10, 120_000);
  await store.close();
  await server.stop();
}, 400_000);
