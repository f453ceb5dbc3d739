import { cli } from '../support/cli';
import { DATABASE, MySqlServer } from '../support/mysql-server';
import { PgBouncer } from '../support/pgbouncer';
import { PostgresServer } from '../support/postgres-server';
import { StartedContract } from './started-contract';

/** A run takes about a minute, and more on a machine that stalls. */
const LIMIT_MS = 600_000;

describe('PostgreSQL', () => {
  let server: PostgresServer;

  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  afterEach(async () => {
    const left = await server.query(`SELECT nspname FROM pg_namespace WHERE nspname LIKE 'distributed%'`);
    expect(left).toEqual([]);
  });
  afterAll(() => server.stop());

  test(
    'a server that will do ends with 0, and nothing is left there',
    async () => {
      const { code, out } = await cli({ LOCKS_POSTGRES: server.url }, ['contract']);
      expect({ failed: out.match(/^FAIL.*$/gm), code }).toEqual({ failed: null, code: 0 });
      expect(out).toMatch(/^ok {4}turns: /m);
    },
    LIMIT_MS,
  );

  test(
    'a pooler in transaction mode is named, and so are the rules that it breaks',
    async () => {
      const bouncer = await PgBouncer.start(server);
      try {
        const { code, out } = await cli({ LOCKS_POSTGRES: bouncer.url }, ['contract']);
        expect(code).toBe(1);
        expect(out).toMatch(
          /^FAIL {2}messages: No NOTIFY arrives\. A pooler in transaction mode.* give PostgresLockStore the address of the server itself as the option listen, or let the pool lead there\.$/m,
        );
        expect(out).toMatch(/^FAIL {2}turns: a .*No NOTIFY arrives/m);
        expect(out).toMatch(/^ok {4}acquire: /m);
      } finally {
        await bouncer.stop();
      }
    },
    LIMIT_MS,
  );

  test(
    'one that is interrupted leaves nothing',
    async () => {
      const run = await StartedContract.on({ LOCKS_POSTGRES: server.url });
      expect(await server.query(`SELECT nspname FROM pg_namespace WHERE nspname LIKE 'distributed%'`)).toHaveLength(1);
      expect(await run.endBy('SIGINT')).toBe(1);
    },
    LIMIT_MS,
  );

  test('a standby, and a user who may make no schema, end with 1, and no rule is tried', async () => {
    await server.query('CREATE ROLE clerk LOGIN');
    const clerk = await cli({ LOCKS_POSTGRES: server.urlFor('clerk') }, ['contract']);
    expect(clerk.code).toBe(1);
    expect(clerk.out).toMatch(/^FAIL {2}store: .*permission denied for database.* GRANT CREATE ON DATABASE to the user/m);
    expect(clerk.out).toMatch(/No rule was checked\./);
    const standby = await server.startStandby();
    const ofStandby = await cli({ LOCKS_POSTGRES: standby.url }, ['contract']);
    await standby.stop();
    expect(ofStandby.code).toBe(1);
    expect(ofStandby.out).toMatch(/^FAIL {2}store: .*read-only/m);
  });
});

describe('MariaDB', () => {
  let server: MySqlServer;

  beforeAll(async () => {
    server = await MySqlServer.start();
  });
  afterEach(async () => {
    expect(await server.query(`SHOW DATABASES LIKE 'distributed%'`)).toEqual([]);
  });
  afterAll(() => server.stop());

  const urlOf = (user: string): string => `mysql://${user}@127.0.0.1:${server.port}/${DATABASE}`;

  test(
    'a server that will do ends with 0, and nothing is left there',
    async () => {
      const { code, out } = await cli({ LOCKS_MYSQL: urlOf('root') }, ['contract']);
      expect({ failed: out.match(/^FAIL.*$/gm), code }).toEqual({ failed: null, code: 0 });
      expect(out).toMatch(/^ok {4}turns: /m);
    },
    LIMIT_MS,
  );

  test(
    'one that is interrupted leaves nothing',
    async () => {
      const run = await StartedContract.on({ LOCKS_MYSQL: urlOf('root') });
      expect(await server.query(`SHOW DATABASES LIKE 'distributed%'`)).toHaveLength(1);
      expect(await run.endBy('SIGINT')).toBe(1);
    },
    LIMIT_MS,
  );

  test('a server that is away and a user who may make nothing have nothing to remove', async () => {
    const away = await cli({ LOCKS_MYSQL: 'mysql://root@127.0.0.1:1/app' }, ['contract']);
    expect(away).toMatchObject({ code: 1, err: '' });
    await server.query(`CREATE USER poor@'%'`);
    await server.query(`GRANT SELECT ON ${DATABASE}.* TO poor@'%'`);
    const poor = await cli({ LOCKS_MYSQL: urlOf('poor') }, ['contract']);
    expect(poor).toMatchObject({ code: 1, err: '' });
  });

  test('a user who may make no database, and a server that is read-only, end with 1 and the next step', async () => {
    await server.query(`CREATE USER clerk@'%'`);
    await server.query(`GRANT ALL ON ${DATABASE}.* TO clerk@'%'`);
    const clerk = await cli({ LOCKS_MYSQL: urlOf('clerk') }, ['contract']);
    expect(clerk.code).toBe(1);
    expect(clerk.out).toMatch(
      /^FAIL {2}store: MySQL failed: Access denied.* GRANT ALL ON `distributed\\_lock\\_contract\\_%`\.\* to the user/m,
    );
    await server.query(`GRANT ALL ON \`distributed\\_lock\\_contract\\_%\`.* TO clerk@'%'`);
    await server.query('SET GLOBAL read_only = 1');
    const readOnly = await cli({ LOCKS_MYSQL: urlOf('clerk') }, ['contract']);
    await server.query('SET GLOBAL read_only = 0');
    expect(readOnly.code).toBe(1);
    expect(readOnly.out).toMatch(/^FAIL {2}store: MySQL failed: .*read-only.* pass the URL of the primary\.$/m);
  });
});
