// Builds the package twice, as ES modules and as CommonJS, and the front end of the page, whose files both formats
// contain. Each format is a few files that the entry points share: Node takes longer to find and link 300 modules than
// to run them. With --if-changed, a build of the same sources stays as it is: another run of the tests may be reading
// it.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix, resolve } from 'node:path';
import { build } from 'esbuild';
import { minify } from 'terser';

const FORMATS = ['esm', 'cjs'];
/** The library, and the page and the command line beside it. In the package, what is in them stands side by side. */
const SOURCES = ['lib', 'console'];
const BUILT = '.cache/built';
/** The output of the compiler, module by module, and the bundler's output made from it. */
const COMPILED = '.cache/compiled';
const BUNDLED = '.cache/bundled';
/**
 * In place of lib/nest/keys/acorn.ts: acorn is loaded when it is first needed. Bundlers take the file with an import,
 * which they see.
 */
const ACORN = {
  'esm/acorn.js':
    "import { createRequire } from 'node:module';\n\nconst require = createRequire(import.meta.url);\nexport const parser = () => require('acorn').parse;\n",
  'esm/acorn-bundled.js': "import { parse } from 'acorn';\n\nexport const parser = () => parse;\n",
  'cjs/acorn.js': "'use strict';\nexports.parser = () => require('acorn').parse;\n",
};
/** The modules that are not put into a file with others, by the end of their path. package.json defines `#acorn`. */
const OWN_FILES = { '/acorn.js': '#acorn', '/app-files.js': './app-files.js' };
const PAGE_FILES = ['app.js', 'app.css'];

/** A digest of all that goes into the build. */
function digestSources() {
  const files = SOURCES.flatMap((folder) => readdirSync(folder, { recursive: true }).map((name) => join(folder, name)));
  const sources = files.filter((name) => /\.(tsx?|css)$/.test(name));
  sources.sort((one, other) => one.localeCompare(other));
  const settings = [
    'package-lock.json',
    'tsconfig.json',
    'console/page/app/tsconfig.json',
    'tsconfig.build.json',
    'package.json',
    'scripts/build.mjs',
  ];
  const hash = createHash('sha256');
  for (const file of [...settings, ...sources]) {
    hash.update(`${file}\n`).update(readFileSync(file));
  }
  return hash.digest('hex');
}

/** The front end: one script and one style sheet, with all that they need. */
async function buildPage() {
  await build({
    entryPoints: [
      { in: 'console/page/app/main.tsx', out: 'app' },
      { in: 'console/page/app/styles/app.css', out: 'app' },
    ],
    outdir: 'dist/page',
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    charset: 'utf8',
    // Calls of `h` are shorter than those of the automatic runtime.
    inject: ['console/page/app/jsx.ts'],
    tsconfigRaw: { compilerOptions: { target: 'es2022', jsx: 'react', jsxFactory: 'h', jsxFragmentFactory: 'Fragment' } },
    legalComments: 'none',
    logLevel: 'warning',
  });
  // Another 3 %.
  const { code } = await minify(readFileSync('dist/page/app.js', 'utf8'), { module: true, ecma: 2020, compress: { passes: 3 } });
  writeFileSync('dist/page/app.js', code);
}

/** Puts the front end into the package, in place of the file that reads it for tests. One copy is enough. */
function embedPage() {
  const files = Object.fromEntries(PAGE_FILES.map((name) => [name, readFileSync(`dist/page/${name}`, 'utf8')]));
  writeFileSync('dist/cjs/page/app-files.js', `'use strict';\nexports.APP_FILES = ${JSON.stringify(files, undefined, 2)};\n`);
  writeFileSync('dist/esm/page/app-files.js', "export { APP_FILES } from '../../cjs/page/app-files.js';\n");
}

/** Compiles the folders of sources into one folder. */
function compile() {
  execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], { stdio: 'inherit' });
  for (const file of readdirSync(`${COMPILED}/console`, { recursive: true }).filter((name) => /\.(js|d\.ts)$/.test(name))) {
    const path = join(COMPILED, 'console', String(file));
    // `../../lib/core/errors.js` is `../core/errors.js` there.
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll(/(['"](?:\.\.\/)+)\.\.\/lib\//g, '$1'));
  }
  for (const folder of SOURCES) {
    readdirSync(`${COMPILED}/${folder}`).forEach((name) => renameSync(`${COMPILED}/${folder}/${name}`, `${COMPILED}/${name}`));
  }
}

/** The modules that package.json names, without their endings. */
function entryPoints() {
  const { exports, bin } = JSON.parse(readFileSync('package.json', 'utf8'));
  const files = [...Object.values(exports).flatMap(({ import: entry }) => entry?.default ?? []), ...Object.values(bin)];
  return files.map((file) => file.replace(/^\.\/dist\/esm\/(.*)\.js$/, '$1'));
}

/** The modules of this package that a compiled file imports, without their endings. */
function modulesIn(text, file) {
  const names = [...text.matchAll(/(?:\bfrom|\bimport\(?) ?['"](\.[^'"]*)\.js['"]/g)].map(([, name]) => name);
  return names.map((name) => posix.join(posix.dirname(file), name));
}

/** One file for each entry point, and for what several of them share. Gives their names, without endings. */
async function bundle(entries) {
  // Each module that the first entry point exports is an entry point of its own here, so that a bundler can leave it
  // out.
  const parts = modulesIn(readFileSync(`${COMPILED}/index.js`, 'utf8'), 'index.js');
  const { metafile } = await build({
    entryPoints: [...entries, ...parts].map((name) => ({ in: `${COMPILED}/${name}.js`, out: name })),
    outdir: BUNDLED,
    bundle: true,
    splitting: true,
    chunkNames: 'shared/[hash]',
    format: 'esm',
    platform: 'node',
    target: 'es2022',
    packages: 'external',
    // Drops comments; the white space comes back.
    minifyWhitespace: true,
    charset: 'utf8',
    metafile: true,
    logLevel: 'warning',
    plugins: [
      {
        name: 'own files',
        setup(plugin) {
          // The helpers of decorators, once: the compiler would put them into each file that has some.
          plugin.onResolve({ filter: /^tslib$/ }, () => ({ path: resolve('node_modules/tslib/tslib.es6.mjs'), sideEffects: false }));
          for (const [end, path] of Object.entries(OWN_FILES)) {
            plugin.onResolve({ filter: new RegExp(`${end.replace('.', '\\.')}$`) }, () => ({ path, external: true }));
          }
        },
      },
    ],
  });
  const needed = new Set(entries);
  for (const name of needed) {
    const { imports } = metafile.outputs[`${BUNDLED}/${name}.js`];
    imports.filter(({ external }) => !external).forEach(({ path }) => needed.add(path.slice(BUNDLED.length + 1, -'.js'.length)));
  }
  return [...needed];
}

/** Drops what no code can reach or needs. Names stay: stacks and Nest show them. */
async function compress(files) {
  for (const name of files) {
    const file = `${BUNDLED}/${name}.js`;
    const options = {
      module: true,
      ecma: 2020,
      mangle: false,
      keep_classnames: true,
      keep_fnames: true,
      compress: { passes: 2, sequences: false, join_vars: false },
    };
    writeFileSync(file, (await minify(readFileSync(file, 'utf8'), options)).code);
  }
}

/** Writes the files in a format of modules. */
async function write(files, format) {
  await build({
    entryPoints: files.map((name) => `${BUNDLED}/${name}.js`),
    outdir: `dist/${format}`,
    outbase: BUNDLED,
    format,
    platform: 'node',
    target: 'es2022',
    // A test runner that runs CommonJS in a context of its own has no import().
    supported: { 'dynamic-import': format === 'esm' },
    charset: 'utf8',
    logLevel: 'warning',
  });
  for (const name of files) {
    const file = `dist/${format}/${name}.js`;
    const toAcorn = posix.relative(posix.dirname(name), 'acorn.js');
    writeFileSync(file, withOwnNames(readFileSync(file, 'utf8')).replace('require("#acorn")', `require("./${toAcorn}")`));
  }
}

/** A decorated class is `var A = class A`, of which esbuild makes `class A2`: Nest would show that name. */
function withOwnNames(text) {
  const renamed = [...text.matchAll(/^(?:var|let|const) (\w+) = (?:\w+ = )?class (\1\d+)\b/gm)];
  return renamed.reduce((before, [, name, other]) => before.replaceAll(new RegExp(`\\b${other}\\b`, 'g'), name), text);
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
  [COMPILED, BUNDLED].forEach((folder) => rmSync(folder, { recursive: true, force: true }));
  await buildPage();
  compile();
  const entries = entryPoints();
  const required = entries.filter((name) => !name.startsWith('cli/'));
  const files = await bundle(entries);
  await compress(files);
  for (const format of FORMATS) {
    await write(format === 'esm' ? files : files.filter((name) => !name.startsWith('cli/')), format);
    copyTypes(required, format);
  }
  embedPage();
  writeFileSync('dist/cjs/package.json', `${JSON.stringify({ type: 'commonjs' })}\n`);
  Object.entries(ACORN).forEach(([file, text]) => writeFileSync(`dist/${file}`, text));
  // As the program that package.json names under bin.
  chmodSync('dist/esm/cli/main.js', 0o755);
  writeFileSync(BUILT, digest);
}
