// Builds the package twice, as ES modules and as CommonJS, each folder with the marker that Node reads. With --if-changed, a build of the same
// sources stays as it is: another run of the tests may be reading it.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const FORMATS = { esm: 'module', cjs: 'commonjs' };
const BUILT = '.cache/built';

/** A digest of all that goes into the build. */
function digestSources() {
  const sources = readdirSync('lib', { recursive: true }).filter((name) => name.endsWith('.ts'));
  sources.sort((one, other) => one.localeCompare(other));
  const settings = [
    'package-lock.json',
    'tsconfig.json',
    ...Object.keys(FORMATS).map((format) => `tsconfig.${format}.json`),
    'scripts/build.mjs',
  ];
  const hash = createHash('sha256');
  for (const file of [...settings, ...sources.map((name) => join('lib', name))]) {
    hash.update(`${file}\n`).update(readFileSync(file));
  }
  return hash.digest('hex');
}

const digest = digestSources();
const isBuilt =
  existsSync(BUILT) &&
  readFileSync(BUILT, 'utf8') === digest &&
  Object.keys(FORMATS).every((format) => existsSync(`dist/${format}/index.js`));
if (!process.argv.includes('--if-changed') || !isBuilt) {
  rmSync(BUILT, { force: true });
  rmSync('dist', { recursive: true, force: true });
  for (const [format, type] of Object.entries(FORMATS)) {
    execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', `tsconfig.${format}.json`], { stdio: 'inherit' });
    mkdirSync(`dist/${format}`, { recursive: true });
    writeFileSync(`dist/${format}/package.json`, `${JSON.stringify({ type })}\n`);
  }
  // As the program that package.json names under bin.
  chmodSync('dist/esm/cli/main.js', 0o755);
  mkdirSync('.cache', { recursive: true });
  writeFileSync(BUILT, digest);
}
