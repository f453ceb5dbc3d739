import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from './run';

test('the types compile with lib ES2021 and skipLibCheck: false', async () => {
  const root = process.cwd();
  const folder = mkdtempSync(join(tmpdir(), 'older-lib-'));
  try {
    cpSync('test/package/fixtures/older-lib', folder, { recursive: true });
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(join(root, 'node_modules/@types'), join(folder, 'node_modules/@types'));
    symlinkSync(root, join(folder, 'node_modules/nestjs-distributed-lock'));
    const { stdout } = await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', '.'], { cwd: folder });
    expect(stdout).toBe('');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
