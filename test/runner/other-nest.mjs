// Plays the suites that boot Nest on an older major of it: `npm run test:nest -- 10`. Paths of suites may follow.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';

/** The packages of each major, by its number. A test that an older major cannot pass says why, beside `NEST_MAJOR`. */
const OTHERS = 'test/runner/nest';

/** Suites whose Nest is not what they test. */
const ELSEWHERE = [
  // Simulations of core, which use decorators of Nest.
  'test/model/',
  // They install packages themselves: matrix.long.spec.ts has the majors of Nest.
  'test/package/',
  // The faults are those of servers, and they take long.
  'test/operations/',
  // The front end of the page: routes.spec.ts and closing.spec.ts have its server.
  'test/page/browser',
  'test/page/five-questions',
  'test/page/large-lists',
  'test/page/later-version',
  'test/page/layout',
  'test/page/outages',
  'test/page/places',
  'test/page/views',
  // They run programs from the folder of packages that they share with the other suites.
  'test/testing/fake-timers',
  'test/readme/quick-start',
];

/** The suites that import a package of Nest, themselves or by what they import from beside them. */
function suitesOfNest() {
  const seen = new Map();
  const needsNest = (path) => {
    if (!seen.has(path)) {
      // Files may import each other.
      seen.set(path, false);
      const imports = [...readFileSync(path, 'utf8').matchAll(/(?:from |import\()'([^']+)'/g)].map(([, name]) => name);
      seen.set(
        path,
        imports.some((name) => name.startsWith('@nestjs/') || fileOf(path, name).some(needsNest)),
      );
    }
    return seen.get(path);
  };
  return readdirSync('test', { recursive: true })
    .filter((name) => name.endsWith('.spec.ts') && !name.startsWith('node_modules'))
    .map((name) => join('test', name))
    .filter((path) => !ELSEWHERE.some((start) => path.startsWith(start)) && needsNest(path))
    .toSorted();
}

/** The file of tests that a relative import names, if it does: all suites import the library itself. */
function fileOf(from, name) {
  const path = name.startsWith('.') ? join(dirname(from), name.replace(/\.js$/, '')) : 'lib/';
  return /^(lib|console)\//.test(path)
    ? []
    : [`${path}.ts`, path].filter((file) => /\.(ts|mjs)$/.test(file) && existsSync(file)).slice(0, 1);
}

/**
 * Makes a copy of this project whose packages of Nest are of that major. All other packages are found in the folders
 * above it: those of `test` in the first one, and those of this project in the next.
 */
function makeWorkspace(folder, major) {
  const between = join(folder, 'test');
  const workspace = join(between, `nest${major}`);
  mkdirSync(workspace, { recursive: true });
  symlinkSync(resolve('test/node_modules'), join(between, 'node_modules'));
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  cpSync(join(OTHERS, `${major}.json`), join(workspace, 'package.json'));
  // Peers are found above, or listed.
  run(
    'npm',
    ['install', '--legacy-peer-deps', '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--prefer-offline'],
    workspace,
  );
  const left = new Set(['node_modules', '.git', '.cache']);
  for (const name of readdirSync('.').filter((each) => !left.has(each))) {
    cpSync(name, join(workspace, name), { recursive: true, filter: (path) => basename(path) !== 'node_modules' });
  }
  return workspace;
}

function run(command, args, cwd) {
  const { status } = spawnSync(command, args, { cwd, stdio: 'inherit' });
  if (status !== 0) {
    throw new Error(`\`${command} ${args.join(' ').slice(0, 200)}\` ended with ${status}.`);
  }
}

const [major = '', ...paths] = process.argv.slice(2);
const majors = readdirSync(OTHERS).map((name) => basename(name, '.json'));
if (!majors.includes(major)) {
  throw new Error(`Name one of the majors ${majors.join(' and ')}: npm run test:nest -- ${majors[0]}`);
}
const suites = paths.length > 0 ? paths : suitesOfNest();
const folder = mkdtempSync(join(tmpdir(), 'lock-nest-'));
try {
  const workspace = makeWorkspace(folder, major);
  const { version } = JSON.parse(readFileSync(join(workspace, 'node_modules/@nestjs/core/package.json'), 'utf8'));
  console.log(`${suites.length} suites on Nest ${version}.`);
  const jest = join(folder, 'node_modules/jest/bin/jest.js');
  try {
    run(process.execPath, ['--experimental-vm-modules', jest, '--runTestsByPath', ...suites], workspace);
  } finally {
    mkdirSync('.cache', { recursive: true });
    for (const kind of ['summary', 'failed']) {
      cpSync(join(workspace, `.cache/${kind}-test-nest`), `.cache/${kind}-test-nest-${major}`, { force: true });
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
