import Database from 'libsql';
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { HoldRecord } from 'nestjs-distributed-lock';
import { SqliteLockStore } from '../../examples/sqlite/sqlite-lock-store';
import { newHold } from '../support/new-hold';

const run = promisify(execFile);
const TYPESCRIPT = ['--import', './test/support/typescript.mjs'];
/** Without what the runner of these tests tells its own processes. */
const env = { ...process.env, NODE_OPTIONS: undefined, NODE_TEST_CONTEXT: undefined };

const folder = mkdtempSync(join(tmpdir(), 'sqlite-'));
const opened: SqliteLockStore[] = [];
afterEach(() => Promise.all(opened.splice(0).map((store) => store.close())));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function open(path: string): Promise<SqliteLockStore> {
  const store = new SqliteLockStore(path);
  opened.push(store);
  await store.open({ prefix: 'lock', warn: (message) => expect(message).toBe('') });
  return store;
}

function hold(key: string, limitMs: number): HoldRecord {
  return newHold(key, { limitMs });
}

/** Keeps all others from writing, until its result is called. */
function block(path: string): () => void {
  const database = new Database(path);
  database.exec('BEGIN IMMEDIATE');
  return () => {
    database.exec('ROLLBACK');
    database.close();
  };
}

test('two processes that lock in an SQLite file lose no update', async () => {
  const number = join(folder, 'number');
  writeFileSync(number, '0');
  const args = [...TYPESCRIPT, 'examples/sqlite/counter.ts', join(folder, 'locks.db'), number, '60'];
  await Promise.all([run(process.execPath, args, { env }), run(process.execPath, args, { env })]);
  expect(readFileSync(number, 'utf8')).toBe('120');
}, 180_000);

test("the contract runs in Node's own runner", async () => {
  const { stdout } = await run(process.execPath, [...TYPESCRIPT, '--test', '--test-reporter=tap', 'examples/sqlite/contract.node.ts'], {
    env,
  });
  expect(stdout).toMatch(/^# pass \d{2,}$/m);
  expect(stdout).toMatch(/^# fail 0$/m);
  expect(stdout).toMatch(/# SKIP/);
  expect(stdout).toContain('skipped: the store does not offer turns');
}, 180_000);

test('the store has at most 155 lines', () => {
  expect(readFileSync('examples/sqlite/sqlite-lock-store.ts', 'utf8').trimEnd().split('\n').length).toBeLessThanOrEqual(155);
});

test('a renewal of several holds settles within the shortest of their limits', async () => {
  const path = join(folder, 'limits.db');
  const store = await open(path);
  const unblock = block(path);
  const startedAt = performance.now();
  await expect(store.renew([hold('patient', 5_000), hold('hasty', 100)])).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: false });
  expect(performance.now() - startedAt).toBeLessThan(3_000);
  unblock();
});

test('a database that is busy keeps no store from being opened, and is ready once it is not', async () => {
  const path = join(folder, 'busy.db');
  const unblock = block(path);
  const store = await open(path);
  await expect(store.acquire(hold('k', 100))).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: false });
  unblock();
  expect((await store.acquire(hold('k', 1_000))).fence).toBeGreaterThan(0);
});

test('an attempt that meets another process which writes leaves no file open', async () => {
  const path = join(folder, 'handles.db');
  const unblock = block(path);
  const store = await open(path);
  const handles = (): number => readdirSync('/proc/self/fd').length;
  const before = handles();
  await expect(store.acquire(hold('k', 1_000))).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: false });
  expect(handles() - before).toBeLessThan(5);
  unblock();
});

test('a file in a folder that does not exist fails the calls, and the error has the cause', async () => {
  const store = await open(join(folder, 'nowhere', 'locks.db'));
  await expect(store.acquire(hold('k', 100))).rejects.toMatchObject({
    code: 'LOCK_STORE',
    cause: { message: expect.stringContaining('open') },
  });
});
