import { PostgresLockStore } from '../../lib/stores/postgres/postgres-lock-store';
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

test('a schema without locks, or a server that is away, ends with 3', async () => {
  expect(await cli(env, ['list', '--schema', 'other'])).toMatchObject({ code: 3, out: '', err: expect.stringContaining('ensureSchema()') });
  const away = await cli({ LOCKS_POSTGRES: 'postgres://user:not-to-be-printed@127.0.0.1:1/db' }, ['list']);
  expect(away).toMatchObject({ code: 3, out: '' });
  expect(away.err).toMatch(/^PostgreSQL .*\n$/);
  expect(away.err).not.toContain('not-to-be-printed');
});
