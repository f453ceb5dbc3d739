import type { HoldRecord } from '../../lib/core/seam/lock-store';
import { MySqlLockStore, schemaSql } from '../../lib/mysql/index';
import { MySqlServer } from '../support/mysql-server';
import { newHold } from '../support/new-hold';
import { patient } from '../support/patient';

let server: MySqlServer;
let store: MySqlLockStore;

beforeAll(async () => {
  server = await MySqlServer.start();
  store = new MySqlLockStore(server.pool());
  await store.ensureSchema();
  await store.open({ prefix: 'lock', warn: () => undefined });
});
afterAll(async () => {
  await store.close();
  await server.stop();
});

/** Gives a procedure another end, which begins with the last SELECT, until the result is called. */
async function ending(procedure: string, change: (reply: string) => string): Promise<() => Promise<void>> {
  const right = schemaSql().find((sql) => sql.startsWith(`CREATE PROCEDURE distributed_lock_${procedure}_`)) ?? '';
  const at = right.lastIndexOf('SELECT');
  const wrong = change(right.slice(at));
  expect(wrong).not.toBe(right.slice(at));
  const make = async (sql: string): Promise<void> => {
    const connection = await server.pool().promise().getConnection();
    await connection.query(`DROP PROCEDURE ${/distributed_lock_\w+/.exec(right)?.[0]}`);
    await connection.query(sql);
    connection.release();
  };
  await make(right.slice(0, at) + wrong);
  return () => make(right);
}

/** Makes the procedure say something else of what it did, until the result is called. */
const answering = (procedure: string, column: string, value: string): Promise<() => Promise<void>> =>
  ending(procedure, (reply) => reply.replace(new RegExp(`\\b${column}\\b|[^,]* AS ${column}\\b`), ` ${value} AS ${column}`));

type Ask = (held: HoldRecord) => Promise<unknown>;
const acquire: Ask = ({ key }) => store.acquire(newHold(key));
const renew: Ask = (held) => store.renew([held, held]);
const release: Ask = (held) => store.release({ ...held, id: 'another' });
const exchange: Ask = (held) => store.exchange(held, newHold(held.key), { name: 'place' }, true);
const join: Ask = (held) => store.join({ ...held, id: 'guest' });
const force: Ask = ({ key, fence }) => store.forceRelease(key, fence);

test.each<[procedure: string, column: string, value: string, ask: Ask]>([
  ['renew', 'answers', 'NULL', renew],
  ['renew', 'answers', `''`, renew],
  ['renew', 'answers', `'1'`, renew],
  ['renew', 'answers', `'1x'`, renew],
  ['renew', 'now_us', 'NULL', renew],
  ['release', 'answer', 'NULL', release],
  ['release', 'answer', `''`, release],
  ['join', 'outcome', 'NULL', join],
  ['join', 'outcome', `'no'`, join],
  ['acquire', 'outcome', 'NULL', acquire],
  ['acquire', 'remaining_ms', 'NULL', acquire],
  ['acquire', 'remaining_ms', `''`, acquire],
  ['exchange', 'answer', 'NULL', exchange],
  ['exchange', 'fence', 'NULL', exchange],
  ['force_release', 'answer', 'NULL', force],
])('where %s answers with %s = %s, the call fails with an unknown outcome', async (procedure, column, value, ask) => {
  const key = `${procedure} ${column} ${value}`;
  const hold = newHold(key);
  const held = { ...hold, fence: (await store.acquire(hold)).fence ?? 0 };
  const putBack = await answering(procedure, column, value);
  try {
    await expect(ask(held)).rejects.toMatchObject({
      code: 'LOCK_STORE',
      unknown: true,
      detail: expect.stringMatching(new RegExp(`^Lock "${key}": MySQL answered what the operation never does: ${column} is `)),
    });
  } finally {
    await putBack();
  }
});

test.each([
  ['a server that is lost behind a proxy', 2013],
  ['a commit that failed', 1180],
])('a release that is answered with %s may have been carried out', async (_, errno) => {
  const hold = newHold(`error ${errno}`);
  await store.acquire(hold);
  // Another hold: a plain statement releases the only one.
  const putBack = await ending(
    'release',
    (reply) => `SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = ${errno}, MESSAGE_TEXT = 'so it says'; ${reply}`,
  );
  try {
    await expect(release(hold)).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: true });
  } finally {
    await putBack();
  }
});

test('a renewal of many holds answers for those whose statement did not fail, and rejects where all failed', async () => {
  const holds = Array.from({ length: 120 }, (_, at) => newHold(`renewed ${String(at).padStart(3, '0')}`));
  const held: HoldRecord[] = [];
  // Beside each other they need more than the second of one, where the machine is busy.
  for (const hold of holds) {
    held.push({ ...hold, fence: (await patient(store).acquire(hold)).fence ?? 0 });
  }
  const [first] = held as [HoldRecord];
  const named = Buffer.from(first.id).toString('hex');
  const putBack = await ending('renew', (reply) => `IF locate('${named}', _renewals) > 0 THEN SIGNAL SQLSTATE '45000'; END IF; ${reply}`);
  try {
    const answers = await store.renew(held);
    // Fifty go in one statement.
    expect(answers).toEqual([...Array<undefined>(50), ...Array<true>(70).fill(true)]);
    await expect(store.renew([first])).rejects.toMatchObject({ code: 'LOCK_STORE' });
  } finally {
    await putBack();
  }
});
