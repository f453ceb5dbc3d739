import type { PoolOptions } from 'mysql2';
import { MySqlLockStore, schemaSql } from '../../lib/mysql/index';
import { migrate } from '../readme/mysql';
import { DATABASE, modesOf, MySqlServer } from '../support/mysql-server';
import { newHold } from '../support/new-hold';
import { saying } from '../support/saying';

let server: MySqlServer;
let databases = 0;
let database: string;
const opened: MySqlLockStore[] = [];
const warnings: string[] = [];

beforeAll(async () => {
  server = await MySqlServer.start();
  await server.query(`CREATE USER app IDENTIFIED BY ''`);
});
beforeEach(async () => {
  database = `schema_${++databases}`;
  await server.query(`CREATE DATABASE ${database}`);
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
  warnings.splice(0);
});
afterAll(() => server.stop());

function make(options: PoolOptions = {}): MySqlLockStore {
  const store = new MySqlLockStore(server.pool({ database, ...options }));
  opened.push(store);
  return store;
}

async function open(store = make()): Promise<MySqlLockStore> {
  await store.open({ prefix: 'lock', warn: (message) => message.includes('innodb_flush') || warnings.push(message) });
  return store;
}

/** Expects that locks can be acquired and released. */
async function expectUsable(store: MySqlLockStore): Promise<void> {
  const hold = newHold('k');
  const { fence = 0 } = await store.acquire(hold);
  expect(await store.renew([{ ...hold, fence, by: '' }])).toEqual([true]);
  expect(await store.release({ ...hold, fence })).toBe(true);
}

/** The `sql_mode` that the procedures were made with. */
async function modes(): Promise<string[]> {
  const rows = await server.query<{ mode: string }>(
    'SELECT DISTINCT sql_mode AS mode FROM information_schema.routines WHERE routine_schema = ?',
    [database],
  );
  return rows.map(({ mode }) => mode);
}

/** Makes the procedures as somebody does who leaves out what sets the mode. */
async function makeByHand(mode: string): Promise<void> {
  const connection = await server.pool({ database }).promise().getConnection();
  await connection.query('SET SESSION sql_mode = ?', [mode]);
  for (const sql of schemaSql().filter((each) => each.startsWith('CREATE'))) {
    await connection.query(sql);
  }
  connection.destroy();
}

describe('the sql_mode of the procedures', () => {
  test('is that of the library where schemaSql() is run by hand, also again, and the session has its own again', async () => {
    const connection = await server.pool({ database }).promise().getConnection();
    await connection.query(`SET SESSION sql_mode = '${modesOf(['ANSI_QUOTES', 'ORACLE', 'EMPTY_STRING_IS_NULL']).join()}'`);
    const mode = async (): Promise<unknown> => (await connection.query('SELECT @@SESSION.sql_mode AS mode'))[0];
    const before = await mode();
    await migrate(connection);
    expect(await mode()).toEqual(before);
    await migrate(connection);
    expect(await mode()).toEqual(before);
    connection.release();
    await expectUsable(await open());
  });

  test('leaves the sessions of the pool alone where ensureSchema() makes them', async () => {
    const pool = server.pool({ database, connectionLimit: 1 });
    await pool.promise().query(`SET SESSION sql_mode = 'ANSI_QUOTES'`);
    await new MySqlLockStore(pool).ensureSchema();
    const [rows] = await pool.promise().query('SELECT @@SESSION.sql_mode AS mode');
    expect(rows).toEqual([{ mode: expect.not.stringContaining('STRICT_ALL_TABLES') }]);
  });

  test('is checked at the start, with an error that names it, and ensureSchema() makes such procedures anew', async () => {
    await makeByHand('PIPES_AS_CONCAT');
    await expect(open()).rejects.toThrow(saying(/made with the sql_mode "PIPES_AS_CONCAT".*Call ensureSchema\(\)/));
    const stores = Array.from({ length: 4 }, () => make());
    await Promise.all(stores.map((store) => store.ensureSchema()));
    expect(await modes()).toEqual(['STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION']);
    await expectUsable(await open());
  });

  test('is named where the user may not make them anew', async () => {
    await makeByHand('HIGH_NOT_PRECEDENCE');
    await server.query(`GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON ${database}.* TO app`);
    await expect(make({ user: 'app' }).ensureSchema()).rejects.toMatchObject({
      code: 'LOCK_CONFIGURATION',
      detail: expect.stringMatching(/sql_mode "HIGH_NOT_PRECEDENCE".*CREATE ROUTINE and ALTER ROUTINE/),
    });
    expect(await modes()).toEqual(['HIGH_NOT_PRECEDENCE']);
  });
});

describe('a table of another version', () => {
  test.each([
    ['a column less', 'lease', 'DROP COLUMN done_ends', 'it has no column done_ends BIGINT'],
    ['a column of another type', 'lease', 'MODIFY turn BIGINT', 'it has no column turn VARBINARY'],
    ['an engine without transactions', 'done', 'ENGINE = MyISAM', 'its engine is MyISAM'],
  ])('with %s fails ensureSchema() and the start, which say what to do', async (_what, table, change, saidOf) => {
    await make().ensureSchema();
    await server.query(`ALTER TABLE ${database}.distributed_lock_${table} ${change}`);
    for (const call of [() => make().ensureSchema(), () => open()]) {
      await expect(call()).rejects.toMatchObject({
        code: 'LOCK_CONFIGURATION',
        detail: expect.stringMatching(
          new RegExp(`the table distributed_lock_${table} in the database "${database}".*${saidOf}.*drop it, and call`),
        ),
      });
    }
  });

  test('that has columns beside those of this one serves', async () => {
    await make().ensureSchema();
    await server.query(`ALTER TABLE ${database}.distributed_lock_lease ADD COLUMN later BIGINT`);
    await make().ensureSchema();
    await expectUsable(await open());
  });
});

describe('where the schema cannot be made', () => {
  test('a user without CREATE ROUTINE is told of it, and not to correct the password', async () => {
    await server.query(`GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, EXECUTE ON ${database}.* TO app`);
    await expect(make({ user: 'app' }).ensureSchema()).rejects.toMatchObject({
      code: 'LOCK_CONFIGURATION',
      detail: expect.stringMatching(/Access denied.*Grant the user.*CREATE ROUTINE/),
    });
  });

  test('compact rows as the default of the server make no difference', async () => {
    await server.query(`SET GLOBAL innodb_default_row_format = compact`);
    try {
      await make().ensureSchema();
    } finally {
      await server.query(`SET GLOBAL innodb_default_row_format = DEFAULT`);
    }
    await expectUsable(await open());
  });

  test('a low max_prepared_stmt_count is named, with what to do', async () => {
    await make().ensureSchema();
    const store = await open();
    await server.query(`SET GLOBAL max_prepared_stmt_count = 0`);
    try {
      await expect(store.acquire(newHold('k'))).rejects.toMatchObject({
        code: 'LOCK_STORE',
        unknown: false,
        detail: expect.stringMatching(/^Lock "k": MySQL failed: .*max_prepared_stmt_count.*\. Raise max_prepared_stmt_count of the server/),
      });
      await open(make());
      expect(warnings).toEqual([expect.stringContaining('Raise max_prepared_stmt_count of the server')]);
    } finally {
      await server.query(`SET GLOBAL max_prepared_stmt_count = DEFAULT`);
    }
    await expectUsable(store);
  });
});

test('small pages are a reason to keep the locks elsewhere', async () => {
  const small = await MySqlServer.start('--innodb-page-size=4k');
  try {
    await expect(new MySqlLockStore(small.pool({ database: DATABASE })).ensureSchema()).rejects.toMatchObject({
      code: 'LOCK_CONFIGURATION',
      detail: expect.stringContaining('need a server with an innodb_page_size of 16k or more'),
    });
  } finally {
    await small.stop();
  }
});
