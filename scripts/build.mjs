// Builds the package twice, as ES modules and as CommonJS, each folder with the marker that Node reads.
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';

const FORMATS = { esm: 'module', cjs: 'commonjs' };

rmSync('dist', { recursive: true, force: true });
for (const [format, type] of Object.entries(FORMATS)) {
  execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', `tsconfig.${format}.json`], { stdio: 'inherit' });
  mkdirSync(`dist/${format}`, { recursive: true });
  writeFileSync(`dist/${format}/package.json`, `${JSON.stringify({ type })}\n`);
}
