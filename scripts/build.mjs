// Builds the package twice, as ES modules and as CommonJS, each folder with the marker that Node reads, and the front end of the page, whose
// files both have in them. With --if-changed, a build of the same sources stays as it is: another run of the tests may be reading it.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { minify } from 'terser';

const FORMATS = { esm: 'module', cjs: 'commonjs' };
const BUILT = '.cache/built';
const PAGE_FILES = ['app.js', 'app.css'];

/** A digest of all that goes into the build. */
function digestSources() {
  const sources = readdirSync('lib', { recursive: true }).filter((name) => /\.(tsx?|css)$/.test(name));
  sources.sort((one, other) => one.localeCompare(other));
  const settings = [
    'package-lock.json',
    'tsconfig.json',
    'lib/page/app/tsconfig.json',
    ...Object.keys(FORMATS).map((format) => `tsconfig.${format}.json`),
    'scripts/build.mjs',
  ];
  const hash = createHash('sha256');
  for (const file of [...settings, ...sources.map((name) => join('lib', name))]) {
    hash.update(`${file}\n`).update(readFileSync(file));
  }
  return hash.digest('hex');
}

/** The front end: one script and one style sheet, with all that they need. */
async function buildPage() {
  await build({
    entryPoints: [
      { in: 'lib/page/app/main.tsx', out: 'app' },
      { in: 'lib/page/app/styles/app.css', out: 'app' },
    ],
    outdir: 'dist/page',
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    charset: 'utf8',
    // Calls of `h` are shorter than those of the automatic runtime.
    inject: ['lib/page/app/jsx.ts'],
    tsconfigRaw: { compilerOptions: { target: 'es2022', jsx: 'react', jsxFactory: 'h', jsxFragmentFactory: 'Fragment' } },
    legalComments: 'none',
    logLevel: 'warning',
  });
  // Another 3 %.
  const { code } = await minify(readFileSync('dist/page/app.js', 'utf8'), { module: true, ecma: 2020, compress: { passes: 3 } });
  writeFileSync('dist/page/app.js', code);
}

/** Puts the front end into a format, in place of the file that reads it for tests. */
function embedPage(format, type) {
  const files = Object.fromEntries(PAGE_FILES.map((name) => [name, readFileSync(`dist/page/${name}`, 'utf8')]));
  const start = type === 'module' ? 'export const APP_FILES =' : "'use strict';\nexports.APP_FILES =";
  writeFileSync(`dist/${format}/page/app-files.js`, `${start} ${JSON.stringify(files, undefined, 2)};\n`);
}

const digest = digestSources();
const isBuilt =
  existsSync(BUILT) &&
  readFileSync(BUILT, 'utf8') === digest &&
  Object.keys(FORMATS).every((format) => existsSync(`dist/${format}/index.js`));
if (!process.argv.includes('--if-changed') || !isBuilt) {
  rmSync(BUILT, { force: true });
  rmSync('dist', { recursive: true, force: true });
  await buildPage();
  for (const [format, type] of Object.entries(FORMATS)) {
    execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', `tsconfig.${format}.json`], { stdio: 'inherit' });
    mkdirSync(`dist/${format}`, { recursive: true });
    writeFileSync(`dist/${format}/package.json`, `${JSON.stringify({ type })}\n`);
    embedPage(format, type);
  }
  // As the program that package.json names under bin.
  chmodSync('dist/esm/cli/main.js', 0o755);
  mkdirSync('.cache', { recursive: true });
  writeFileSync(BUILT, digest);
}
