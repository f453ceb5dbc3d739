import { run } from './run.js';

test('the types compile with lib ES2021 and skipLibCheck: false', async () => {
  const { stdout } = await run(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'test/package/fixtures/older-lib'], {
    cwd: '.',
  });
  expect(stdout).toBe('');
});
