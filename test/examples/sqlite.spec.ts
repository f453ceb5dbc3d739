import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const TYPESCRIPT = ['--import', './test/support/typescript.mjs'];
/** Without what the runner of these tests tells its own processes. */
const env = { ...process.env, NODE_OPTIONS: undefined, NODE_TEST_CONTEXT: undefined };

const folder = mkdtempSync(join(tmpdir(), 'sqlite-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('two processes that lock in an SQLite file lose no update', async () => {
  const number = join(folder, 'number');
  writeFileSync(number, '0');
  const args = [...TYPESCRIPT, 'examples/sqlite/counter.ts', join(folder, 'locks.db'), number, '60'];
  await Promise.all([run(process.execPath, args, { env }), run(process.execPath, args, { env })]);
  expect(readFileSync(number, 'utf8')).toBe('120');
}, 60_000);

test("the contract runs in Node's own runner", async () => {
  const { stdout } = await run(process.execPath, [...TYPESCRIPT, '--test', '--test-reporter=tap', 'examples/sqlite/contract.node.ts'], {
    env,
  });
  expect(stdout).toMatch(/^# pass \d{2,}$/m);
  expect(stdout).toMatch(/^# fail 0$/m);
  expect(stdout).toMatch(/# SKIP/);
  expect(stdout).toContain('skipped: the store does not offer turns');
}, 60_000);

test('the store has at most 150 lines', () => {
  expect(readFileSync('examples/sqlite/sqlite-lock-store.ts', 'utf8').trimEnd().split('\n').length).toBeLessThanOrEqual(150);
});
