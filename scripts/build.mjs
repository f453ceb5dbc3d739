// Builds the package twice, as ES modules and as CommonJS, and the front end of the page, whose files both have in them. Each format is a few
// files that the entry points share: Node takes longer to find and link 300 modules than to run them. With --if-changed, a build of the same
// sources stays as it is: another run of the tests may be reading it.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { build } from 'esbuild';
import { minify } from 'terser';

const FORMATS = ['esm', 'cjs'];
const BUILT = '.cache/built';
/** What the compiler makes, module by module. */
const COMPILED = '.cache/compiled';
/** What Node loads the same files by, whoever asks for them. */
const MANIFESTS = {
  // Bundlers leave out a file of which nothing is used, unless it is named here; they read this from the nearest package.json.
  esm: {
    type: 'module',
    sideEffects: ['./index.js', './cli/main.js'],
    imports: { '#acorn': { module: './acorn-bundled.js', default: './acorn.js' } },
  },
  cjs: { type: 'commonjs', imports: { '#acorn': './acorn.js' } },
};
/** In place of lib/nest/acorn.ts: acorn is loaded when it is first needed. Bundlers see the import, and so have it in the bundle. */
const ACORN = {
  'esm/acorn.js':
    "import { createRequire } from 'node:module';\n\nconst require = createRequire(import.meta.url);\nexport const parser = () => require('acorn').parse;\n",
  'esm/acorn-bundled.js': "import { parse } from 'acorn';\n\nexport const parser = () => parse;\n",
  'cjs/acorn.js': "'use strict';\nexports.parser = () => require('acorn').parse;\n",
};
/** What is not put into a file with others, by the end of its path. */
const OWN_FILES = { '/acorn.js': '#acorn', '/app-files.js': './app-files.js' };
const PAGE_FILES = ['app.js', 'app.css'];

/** A digest of all that goes into the build. */
function digestSources() {
  const sources = readdirSync('lib', { recursive: true }).filter((name) => /\.(tsx?|css)$/.test(name));
  sources.sort((one, other) => one.localeCompare(other));
  const settings = [
    'package-lock.json',
    'tsconfig.json',
    'lib/page/app/tsconfig.json',
    'tsconfig.build.json',
    'package.json',
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
function embedPage(format) {
  const files = Object.fromEntries(PAGE_FILES.map((name) => [name, readFileSync(`dist/page/${name}`, 'utf8')]));
  const start = format === 'esm' ? 'export const APP_FILES =' : "'use strict';\nexports.APP_FILES =";
  writeFileSync(`dist/${format}/page/app-files.js`, `${start} ${JSON.stringify(files, undefined, 2)};\n`);
}

/** The modules that package.json names, without their endings. */
function entryPoints() {
  const { exports, bin } = JSON.parse(readFileSync('package.json', 'utf8'));
  const files = [...Object.values(exports).flatMap(({ import: entry }) => entry?.default ?? []), ...Object.values(bin)];
  return files.map((file) => file.replace(/^\.\/dist\/esm\/(.*)\.js$/, '$1'));
}

/** The modules that a compiled file names in its directory and below, without their endings. */
function modulesIn(text, file) {
  const names = [...text.matchAll(/(?:\bfrom|\bimport\(?) ?['"](\.[^'"]*)\.js['"]/g)].map(([, name]) => name);
  return names.map((name) => posix.join(posix.dirname(file), name));
}

/** The ES modules: each entry point, and what several of them share. Gives the names of the files, without their endings. */
async function bundle(entries) {
  // Each module that the first entry point exports is an entry point of its own here, so that a bundler can leave it out.
  const parts = modulesIn(readFileSync(`${COMPILED}/index.js`, 'utf8'), 'index.js');
  const { metafile } = await build({
    entryPoints: [...entries, ...parts].map((name) => ({ in: `${COMPILED}/${name}.js`, out: name })),
    outdir: 'dist/esm',
    bundle: true,
    splitting: true,
    chunkNames: 'shared/[hash]',
    format: 'esm',
    platform: 'node',
    target: 'es2022',
    packages: 'external',
    charset: 'utf8',
    metafile: true,
    logLevel: 'warning',
    plugins: [
      {
        name: 'own files',
        setup: ({ onResolve }) =>
          Object.entries(OWN_FILES).forEach(([end, path]) =>
            onResolve({ filter: new RegExp(`${end.replace('.', '\\.')}$`) }, () => ({ path, external: true })),
          ),
      },
    ],
  });
  Object.keys(metafile.outputs).forEach(restoreNames);
  const needed = new Set(entries);
  for (const name of needed) {
    const { imports } = metafile.outputs[`dist/esm/${name}.js`];
    imports.filter(({ external }) => !external).forEach(({ path }) => needed.add(path.slice('dist/esm/'.length, -'.js'.length)));
  }
  parts.filter((name) => !needed.has(name)).forEach((name) => rmSync(`dist/esm/${name}.js`));
  return [...needed];
}

/** A decorated class is `var A = class A`, of which esbuild makes `class A2`: Nest would show that name. */
function restoreNames(file) {
  let text = readFileSync(file, 'utf8');
  for (const [, name, renamed] of text.matchAll(/^var (\w+) = (?:\w+ = )?class (\1\d+)\b/gm)) {
    text = text.replaceAll(new RegExp(`\\b${renamed}\\b`, 'g'), name);
  }
  writeFileSync(file, text);
}

/** The same files as CommonJS. */
async function convert(files) {
  await build({
    entryPoints: files.map((name) => `dist/esm/${name}.js`),
    outdir: 'dist/cjs',
    outbase: 'dist/esm',
    format: 'cjs',
    platform: 'node',
    target: 'es2022',
    // A test runner that runs CommonJS in a context of its own has no import().
    supported: { 'dynamic-import': false },
    charset: 'utf8',
    logLevel: 'warning',
  });
}

/** The declarations that the entry points reach. */
function copyTypes(entries, format) {
  const needed = new Set(entries);
  for (const name of needed) {
    const file = `${COMPILED}/${name}.d.ts`;
    const target = `dist/${format}/${name}.d.ts`;
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(file, target);
    modulesIn(readFileSync(file, 'utf8'), `${name}.d.ts`).forEach((other) => needed.add(other));
  }
}

const digest = digestSources();
const isBuilt =
  existsSync(BUILT) && readFileSync(BUILT, 'utf8') === digest && FORMATS.every((format) => existsSync(`dist/${format}/index.js`));
if (!process.argv.includes('--if-changed') || !isBuilt) {
  rmSync(BUILT, { force: true });
  rmSync('dist', { recursive: true, force: true });
  rmSync(COMPILED, { recursive: true, force: true });
  await buildPage();
  execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], { stdio: 'inherit' });
  const entries = entryPoints();
  const required = entries.filter((name) => !name.startsWith('cli/'));
  const files = await bundle(entries);
  await convert(files.filter((name) => !name.startsWith('cli/')));
  for (const format of FORMATS) {
    writeFileSync(`dist/${format}/package.json`, `${JSON.stringify(MANIFESTS[format], undefined, 2)}\n`);
    copyTypes(required, format);
    embedPage(format);
  }
  Object.entries(ACORN).forEach(([file, text]) => writeFileSync(`dist/${file}`, text));
  // As the program that package.json names under bin.
  chmodSync('dist/esm/cli/main.js', 0o755);
  writeFileSync(BUILT, digest);
}
