import { codeLines } from '../../scripts/size.mjs';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

const { peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as { peerDependencies: Record<string, string> };
// Every part may need what decorators need.
const PACKAGES = [...Object.keys(peerDependencies), 'mysql2/promise'].filter((name) => name !== 'reflect-metadata');
const NEST = ['@nestjs/common', '@nestjs/core', 'rxjs'];

/**
 * The packages of users that the code of a folder may import. Most drivers are recognized by their methods, and not
 * imported.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  'lib/nest': NEST,
  'lib/nest/application': NEST,
  'lib/nest/keys': NEST,
  'lib/nest/methods': NEST,
  'console/page': NEST,
  'console/cli': ['ioredis', 'mysql2', 'pg', 'redis'],
  'lib/tickets': NEST,
  'lib/otel': ['@opentelemetry/api'],
  'lib/prometheus': ['prom-client'],
  'lib/stores/redis': ['ioredis'],
};

const foldersOf = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(folder, name));
const folders = [
  ...foldersOf('lib').filter((name) => name !== 'lib/stores' && name !== 'lib/core'),
  ...foldersOf('lib/core'),
  ...foldersOf('lib/stores'),
  ...foldersOf('lib/stores/postgres'),
  ...foldersOf('lib/stores/mysql'),
  ...foldersOf('lib/stores/redis/connection'),
  ...foldersOf('lib/nest'),
  ...foldersOf('lib/store-contract'),
  ...foldersOf('console'),
];

/** A file of a folder, with imports of which the linter refuses some. */
interface Probe {
  readonly file: string;
  readonly imports: readonly string[];
}
const probes: Probe[] = [];
const refused = new Map<string, string[]>();

/** Declares that the linter refuses, in a file of the folder, these imports, and none of those that are `taken`. */
function linterRefuses(
  what: string,
  folder: string,
  expected: readonly string[],
  taken: readonly string[] = [],
  name = `probe-${probes.length}.ts`,
): void {
  const file = join(folder, name);
  probes.push({ file, imports: [...expected, ...taken] });
  test(`the linter refuses in ${name === 'locks.ts' ? file : folder} ${what}`, () => {
    expect([...new Set(refused.get(file))].toSorted()).toEqual(expected.toSorted());
  });
}

beforeAll(() => {
  const root = mkdtempSync(join(tmpdir(), 'layers-'));
  try {
    lintProbes(root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});

/** Lints all probes with one process: to start the linter takes longer than to lint them. */
function lintProbes(root: string): void {
  copyFileSync('.oxlintrc.json', join(root, '.oxlintrc.json'));
  for (const { file, imports } of probes) {
    mkdirSync(join(root, dirname(file)), { recursive: true });
    writeFileSync(join(root, file), imports.map((name, at) => `import { a${at} } from '${name}';\n`).join(''));
  }
  const flags = ['--format=json', '--allow=all', '--deny=no-restricted-imports', ...probes.map(({ file }) => file)];
  const { stdout } = spawnSync(resolve('node_modules/.bin/oxlint'), flags, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 });
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: Diagnostic[] };
  for (const { code, filename, labels } of diagnostics) {
    if (code.includes('no-restricted-imports')) {
      const { imports } = probes.find(({ file }) => file === filename) as Probe;
      refused.set(filename, [...(refused.get(filename) ?? []), imports[(labels[0]?.span.line ?? 0) - 1] as string]);
    }
  }
}

interface Diagnostic {
  readonly code: string;
  readonly filename: string;
  readonly labels: readonly { readonly span: { readonly line: number } }[];
}

for (const folder of folders) {
  const may = MAY_IMPORT[folder] ?? [];
  linterRefuses(
    'the packages that it must not know',
    folder,
    PACKAGES.filter((name) => !may.includes(name)),
    PACKAGES.filter((name) => may.includes(name)),
  );
}

for (const folder of folders.filter((name) => name.startsWith('lib/stores/'))) {
  const up = '../'.repeat(folder.split('/').length - 1);
  linterRefuses(
    'what stands above stores',
    folder,
    ['nest/lock.module.js', 'otel/index.js'].map((file) => up + file),
  );
}

const SHARED = ['../kit/protocol.js', '../../core/words/errors.js'];
linterRefuses(
  'each of the stores',
  'lib/stores/sql',
  ['../mysql/mysql-pool.js', '../postgres/postgres-pool.js', '../redis/redis-lock-store.js'],
  SHARED,
);
for (const store of ['mysql', 'postgres']) {
  const others = ['mysql', 'postgres', 'redis', 'memory'].filter((name) => name !== store);
  linterRefuses(
    'the other stores',
    `lib/stores/${store}`,
    others.map((name) => `../${name}/probe.js`),
    ['../sql/calls.js', ...SHARED],
  );
}

/** The storeys of core, and what each may import of the others. */
const STOREYS: Readonly<Record<string, readonly string[]>> = {
  words: [],
  seam: ['words'],
  calls: ['words'],
  leases: ['words', 'seam', 'calls'],
  transactions: ['words', 'calls', 'leases'],
  entering: ['words', 'seam', 'calls', 'leases', 'transactions'],
  watching: ['words', 'seam', 'calls', 'leases', 'transactions', 'entering'],
};

test('each folder of core is a storey', () => {
  expect(foldersOf('lib/core').toSorted()).toEqual(
    Object.keys(STOREYS)
      .map((name) => join('lib/core', name))
      .toSorted(),
  );
});

const ABOVE_CORE = ['stores/kit/protocol.js', 'nest/lock.module.js', 'peers/peers.js', 'leader/candidates.js', 'locks.js'];
/** The storeys of which `watching` knows values; it knows types of all storeys. */
const OF_WATCHING = ['words', 'seam'];
for (const [storey, below] of Object.entries(STOREYS)) {
  const known = storey === 'watching' ? OF_WATCHING : below;
  const others = Object.keys(STOREYS).filter((name) => name !== storey && !known.includes(name));
  linterRefuses(
    storey === 'watching' ? 'values of what it looks at' : 'what stands above it',
    join('lib/core', storey),
    [...others.map((name) => `../${name}/probe.js`), ...ABOVE_CORE.map((file) => `../../${file}`)],
    known.map((name) => `../${name}/probe.js`),
  );
}

/** A folder with those in it, and how many files are in each. */
const sizesOf = (folder: string): [string, number][] => [
  [folder, readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile()).length],
  ...foldersOf(folder).flatMap(sizesOf),
];

test('no folder of the library has more than 17 files, and no file of core more than 245 lines of code', () => {
  expect(sizesOf('lib').filter(([, files]) => files > 17)).toEqual([]);
  const core = foldersOf('lib/core').flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)));
  expect(core.filter((file) => codeLines(readFileSync(file, 'utf8')) > 245)).toEqual([]);
});

linterRefuses(
  'all but core, leader and peers',
  'lib',
  ['./nest/lock.module.js', './stores/kit/protocol.js', '../console/cli/main.js', ...PACKAGES],
  ['./core/entering/frame.js', './leader/candidates.js', './peers/peers.js'],
  'locks.ts',
);

for (const folder of ['lib/leader', 'lib/peers']) {
  linterRefuses(
    'all but core',
    folder,
    ['stores/kit/protocol.js', 'nest/lock.module.js', 'locks.js'].map((file) => `../${file}`),
    ['../core/entering/frame.js'],
  );
}

for (const folder of ['lib', ...folders.filter((name) => name.startsWith('lib/'))]) {
  const up = '../'.repeat(folder.split('/').length);
  linterRefuses(
    'the console',
    folder,
    ['page/index.js', 'cli/main.js'].map((file) => `${up}console/${file}`),
  );
}

linterRefuses(
  'all but the seam, the errors and what rules are made of',
  'lib/store-contract/rules',
  ['../../core/leases/lease.js', '../../stores/kit/protocol.js', '../../testing/index.js', '@jest/globals'],
  ['../rule.js', '../../core/seam/lock-store.js', '../../core/words/errors.js', './turns.js'],
);

linterRefuses(
  'the stores and the command line',
  'console/page',
  ['../../lib/stores/redis/redis-lock-store.js', '../../lib/otel/index.js', '../cli/main.js'],
  ['../../lib/core/errors.js', '../../lib/nest/lock.service.js'],
);
