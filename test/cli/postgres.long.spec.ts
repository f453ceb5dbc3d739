import { PostgresLockStore } from '../../lib/postgres/postgres-lock-store';
import { cli } from '../support/cli';
import { PostgresServer } from '../support/postgres-server';
import { describeCommands } from './commands-suite';

let server: PostgresServer;
let store: PostgresLockStore;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  server = await PostgresServer.start();
  store = new PostgresLockStore(server.pool());
  await store.ensureSchema();
  await store.open({ prefix: 'lock', warn: () => undefined });
  env = { LOCKS_POSTGRES: server.url };
});
afterAll(async () => {
  await store.close();
  await server.stop();
});

const otherStore = async () => {
  const other = new PostgresLockStore(server.pool());
  await other.open({ prefix: 'lock', warn: () => undefined });
  return other;
};

describeCommands(() => ({ store, env, otherStore }));

test('the doctor tells the versions, and fails where a schema has no locks', async () => {
  const { out } = await cli(env, ['doctor']);
  expect(out).toMatch(/^ok {4}server: version: PostgreSQL \d+\.\d+\.$/m);
  expect(out).toMatch(/^ok {4}server: schema: "distributed_lock" has version \d+\.$/m);
  const other = await cli(env, ['doctor', '--schema', 'other']);
  expect(other.code).toBe(1);
  expect(other.out).toMatch(/^FAIL {2}server: .*has no locks in the schema "other"\. Call ensureSchema\(\)/m);
});

test('the doctor fails where a database is read-only', async () => {
  await server.query('ALTER DATABASE postgres SET default_transaction_read_only = on');
  const readOnly = await cli(env, ['doctor']);
  await server.query('ALTER DATABASE postgres RESET default_transaction_read_only');
  expect(readOnly.code).toBe(1);
  expect(readOnly.out).toMatch(/^FAIL {2}server: .*because default_transaction_read_only is on/m);
});

test('a user without a right is told which, and of no outage', async () => {
  await server.query('CREATE ROLE clerk LOGIN');
  const clerk = { LOCKS_POSTGRES: server.urlFor('clerk') };
  const steps = [
    ['', /permission denied for schema .* Grant the user USAGE on the schema/],
    ['GRANT USAGE ON SCHEMA distributed_lock TO clerk', /the user lacks SELECT on .* Grant that in the schema/],
    [
      'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA distributed_lock TO clerk; REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA distributed_lock FROM PUBLIC',
      /permission denied for function .* Grant the user EXECUTE on the functions/,
    ],
    ['REVOKE CONNECT ON DATABASE postgres FROM PUBLIC', /permission denied for database .* Grant the user CONNECT on the database/],
  ] as const;
  try {
    for (const [sql, said] of steps) {
      await server.query(sql);
      for (const words of [['list'], ['processes'], ['release', 'key', '--fence', '1', '--yes']]) {
        expect(await cli(clerk, words)).toMatchObject({ code: 3, out: '', err: expect.stringMatching(said) });
      }
      const { code, out } = await cli(clerk, ['doctor']);
      expect({ code, out }).toEqual({ code: 1, out: expect.stringMatching(said) });
      expect(out).not.toMatch(/not answer|can be reached/);
    }
  } finally {
    await server.query('GRANT CONNECT ON DATABASE postgres TO PUBLIC; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA distributed_lock TO PUBLIC');
  }
});

test('a prefix at which nobody answers is named with its schema', async () => {
  const { code, out, err } = await cli(env, ['list', '--prefix', 'jobs']);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toMatch(
    /^No locks are held\.\nNo process answers at the prefix "jobs" of the schema "distributed_lock".* \(pass --prefix or --schema\)/,
  );
});

test('a schema without locks, or a server that is away, ends with 3', async () => {
  expect(await cli(env, ['list', '--schema', 'other'])).toMatchObject({ code: 3, out: '', err: expect.stringContaining('ensureSchema()') });
  const away = await cli({ LOCKS_POSTGRES: 'postgres://user:not-to-be-printed@127.0.0.1:1/db' }, ['list']);
  expect(away).toMatchObject({ code: 3, out: '' });
  expect(away.err).toMatch(/^PostgreSQL .*\n$/);
  expect(away.err).not.toContain('not-to-be-printed');
});
