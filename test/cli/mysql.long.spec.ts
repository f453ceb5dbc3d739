import { MySqlLockStore } from '../../lib/mysql/mysql-lock-store';
import { cli, cliUntil } from '../support/cli';
import { DATABASE, MySqlServer } from '../support/mysql-server';
import { newHold } from '../support/new-hold';
import { describeCommands } from './commands-suite';

const PASSWORD = 'not-to-be-printed';

let server: MySqlServer;
let store: MySqlLockStore;
let env: NodeJS.ProcessEnv;

const urlOf = (database: string, user = ''): string => `mysql://${user}127.0.0.1:${server.port}/${database}`;

beforeAll(async () => {
  server = await MySqlServer.start();
  await server.query(`CREATE USER locker@'%' IDENTIFIED BY '${PASSWORD}'`);
  await server.query(`GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON ${DATABASE}.* TO locker@'%'`);
  store = new MySqlLockStore(server.pool());
  await store.ensureSchema();
  await store.open({ prefix: 'lock', warn: () => undefined });
  env = { LOCKS_MYSQL: urlOf(DATABASE), LOCKS_USER: 'locker', LOCKS_PASSWORD: PASSWORD };
});
afterAll(async () => {
  await store.close();
  await server.stop();
});

const otherStore = async () => {
  const other = new MySqlLockStore(server.pool());
  await other.open({ prefix: 'lock', warn: () => undefined });
  return other;
};

describeCommands(() => ({ store, env, otherStore }), { messages: false });

test('top shows the locks of the store, and who queues', async () => {
  const others = [await otherStore(), await otherStore()];
  const { fence } = await store.acquire(newHold('topped', { ttlMs: 60_000, by: 'Jobs.run' }));
  await Promise.all(others.map((other) => other.acquire(newHold('topped', { ttlMs: 60_000 }), { name: 'place' })));
  const json = await cliUntil(env, ['top', '--json'], ({ out }) => out.includes('"keys":[{'));
  expect(json).toMatchObject({ code: 0, err: '' });
  const { oldest, keys, names } = JSON.parse(json.out) as { oldest: unknown[]; keys: unknown[]; names: unknown[] };
  expect(oldest).toContainEqual(expect.objectContaining({ key: 'topped', fence, heldMs: expect.any(Number) }));
  expect({ keys, names }).toEqual({ keys: [{ key: 'topped', waiting: null, longestMs: null, queued: 2 }], names: [] });
  const shown = await cli(env, ['top']);
  expect(shown.out).toMatch(/^The locks are those of the store\.\n/);
  expect(shown.out).toMatch(/^topped .*Jobs\.run/m);
  expect(shown.out).toMatch(/^topped +- +- +2$/m);
  await Promise.all(others.map((other) => other.close()));
});

test.each(['processes', 'incidents'])('%s asks nobody, and says which commands show the locks', async (command) => {
  expect(await cli(env, [command])).toEqual({
    code: 2,
    out: '',
    err: `${command} asks processes, which --mysql cannot: its store carries no messages. See the locks by list, inspect and top.\n`,
  });
});

test('a prefix at which no lock is held is named', async () => {
  const { code, out, err } = await cli(env, ['list', '--prefix', 'jobs']);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toBe(
    'No locks are held.\nIf an application holds locks, it has another prefix than "jobs" (pass --prefix), or another database.\n',
  );
});

test('the doctor tells the version, and fails where a database has no locks or takes no writes', async () => {
  const { out } = await cli(env, ['doctor']);
  expect(out).toMatch(/^ok {4}server: version: MariaDB \d+\.\d+\.\d+\.$/m);
  expect(out).toMatch(/^warn {2}server: settings: .*innodb_flush_log_at_trx_commit is not 1/m);
  expect(out).toMatch(/^ok {4}server: schema: "app" has the tables and procedures of this version\.$/m);
  await server.query('CREATE DATABASE other');
  await server.query(`GRANT ALL ON other.* TO locker@'%'`);
  const other = await cli({ ...env, LOCKS_MYSQL: urlOf('other') }, ['doctor']);
  expect(other.code).toBe(1);
  expect(other.out).toMatch(/^FAIL {2}server: .*"other" does not have all tables and procedures.* Call ensureSchema\(\)/m);
  await server.query('SET GLOBAL read_only = 1');
  const readOnly = await cli(env, ['doctor']);
  await server.query('SET GLOBAL read_only = 0');
  expect(readOnly.code).toBe(1);
  expect(readOnly.out).toMatch(/^FAIL {2}server: replicas: The server takes no writes of this user.* Pass the URL of the primary\.$/m);
  expect(readOnly.out).toMatch(/^FAIL {2}store: It takes no writes/m);
});

test.each([
  ['locked tables', ['LOCK TABLES app.distributed_lock_lease WRITE'], 'UNLOCK TABLES'],
  ['a global read lock', ['FLUSH TABLES WITH READ LOCK'], 'UNLOCK TABLES'],
  ['a backup', ['BACKUP STAGE START', 'BACKUP STAGE FLUSH', 'BACKUP STAGE BLOCK_DDL', 'BACKUP STAGE BLOCK_COMMIT'], 'BACKUP STAGE END'],
  ['a row that a transaction has locked', ['BEGIN', 'SELECT * FROM app.distributed_lock_lease FOR UPDATE'], 'ROLLBACK'],
])('the doctor fails where writes wait for %s', async (_name, strike, mend) => {
  const session = await server.pool({ connectionLimit: 1 }).promise().getConnection();
  for (const sql of strike) {
    await session.query(sql);
  }
  const refused = await cli(env, ['doctor']);
  await session.query(mend);
  session.release();
  expect(refused).toMatchObject({ code: 1, err: '' });
  expect(refused.out.match(/^FAIL.*$/gm)).toEqual([
    expect.stringMatching(/^FAIL {2}server: writes: .*A session may have locked the tables/),
  ]);
  await cliUntil(env, ['doctor'], ({ code, out }) => code === 0 && /^ok {4}server: writes: A lock was acquired within /m.test(out));
});

test('the doctor leaves one row, however often it runs', async () => {
  for (let run = 0; run < 2; run++) {
    await cliUntil(env, ['doctor'], ({ code }) => code === 0);
  }
  const rows = await server.query("SELECT owner FROM app.distributed_lock_lease WHERE name LIKE '%doctor%'");
  expect(rows).toEqual([{ owner: null }]);
});

test('a server that is away, or refuses the login, ends with 3 and one line without the password', async () => {
  const away = await cli({ LOCKS_MYSQL: `mysql://user:${PASSWORD}@127.0.0.1:1/app` }, ['list']);
  expect(away).toMatchObject({ code: 3, out: '', err: expect.stringMatching(/^MySQL .*\n$/) });
  const refused = await cli({ ...env, LOCKS_PASSWORD: `wrong-${PASSWORD}` }, ['list']);
  expect(refused).toMatchObject({
    code: 3,
    out: '',
    err: expect.stringMatching(/^MySQL .* Correct the user, password and database .*\n$/),
  });
  expect(away.err + refused.err).not.toContain(PASSWORD);
});
