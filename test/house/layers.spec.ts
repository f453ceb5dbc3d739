import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const { peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as { peerDependencies: Record<string, string> };
// Every part may need what decorators need.
const PACKAGES = [...Object.keys(peerDependencies), 'mysql2/promise'].filter((name) => name !== 'reflect-metadata');
const NEST = ['@nestjs/common', '@nestjs/core', 'rxjs'];

/** What the code of a folder may import of the packages that a user may have. Most drivers are known by what they can do. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  'lib/nest': NEST,
  'lib/nest/keys': NEST,
  'lib/nest/methods': NEST,
  'console/page': NEST,
  'console/cli': ['pg'],
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
  ...foldersOf('lib/nest'),
  ...foldersOf('console'),
];

let root: string;

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'layers-'));
  copyFileSync('.oxlintrc.json', join(root, '.oxlintrc.json'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** The imports that the linter refuses in a file of a folder. */
function refused(folder: string, imports: readonly string[]): string[] {
  mkdirSync(join(root, folder), { recursive: true });
  const file = join(folder, 'probe.ts');
  writeFileSync(join(root, file), imports.map((name, at) => `import { a${at} } from '${name}';\n`).join(''));
  const flags = ['--format=json', '--allow=all', '--deny=no-restricted-imports', file];
  let output: string;
  try {
    output = execFileSync(resolve('node_modules/.bin/oxlint'), flags, { cwd: root, encoding: 'utf8', stdio: 'pipe' });
  } catch (error) {
    output = (error as { stdout: string }).stdout;
  }
  const { diagnostics } = JSON.parse(output) as { diagnostics: { code: string; labels: { span: { line: number } }[] }[] };
  return diagnostics
    .filter(({ code }) => code.includes('no-restricted-imports'))
    .map(({ labels }) => imports[(labels[0]?.span.line ?? 0) - 1] as string);
}

test.each(folders)('the linter refuses in %s the packages that it must not know', (folder) => {
  const expected = PACKAGES.filter((name) => !(MAY_IMPORT[folder] ?? []).includes(name));
  expect(refused(folder, PACKAGES).toSorted()).toEqual(expected.toSorted());
});

test.each(folders.filter((folder) => folder.startsWith('lib/stores/')))('the linter refuses in %s what stands above stores', (folder) => {
  const up = '../'.repeat(folder.split('/').length - 1);
  const above = ['nest/lock.module.js', 'otel/index.js'].map((file) => up + file);
  expect(refused(folder, above).toSorted()).toEqual(above.toSorted());
});

test('the linter refuses in what stores of SQL share each of these stores', () => {
  const stores = ['../mysql/mysql-pool.js', '../postgres/postgres-pool.js', '../redis/redis-lock-store.js'];
  expect(refused('lib/stores/sql', [...stores, '../kit/protocol.js', '../../core/words/errors.js']).toSorted()).toEqual(stores.toSorted());
});

test.each(['mysql', 'postgres'])('the linter refuses in lib/stores/%s the other stores, and takes what stores of SQL share', (folder) => {
  const others = ['mysql', 'postgres', 'redis', 'memory'].filter((name) => name !== folder).map((name) => `../${name}/probe.js`);
  const taken = ['../sql/calls.js', '../kit/protocol.js', '../../core/words/errors.js'];
  expect(refused(`lib/stores/${folder}`, [...others, ...taken]).toSorted()).toEqual(others.toSorted());
});

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

test.each(Object.entries(STOREYS))('the linter refuses in lib/core/%s what stands above it', (storey, below) => {
  const others = Object.keys(STOREYS).filter((name) => name !== storey && !below.includes(name));
  const above = [
    ...others.map((name) => `../${name}/probe.js`),
    ...['stores/kit/protocol.js', 'nest/lock.module.js', 'peers/peers.js', 'leader/candidates.js', 'locks.js'].map(
      (file) => `../../${file}`,
    ),
  ];
  expect(refused(join('lib/core', storey), [...above, ...below.map((name) => `../${name}/probe.js`)]).toSorted()).toEqual(above.toSorted());
});

test.each(['lib/leader', 'lib/peers'])('the linter refuses in %s all but core', (folder) => {
  const above = ['stores/kit/protocol.js', 'nest/lock.module.js', 'locks.js'].map((file) => `../${file}`);
  expect(refused(folder, [...above, '../core/entering/frame.js']).toSorted()).toEqual(above.toSorted());
});

test.each(['lib', ...folders.filter((folder) => folder.startsWith('lib/'))])('the linter refuses the console in %s', (folder) => {
  const console = ['page/index.js', 'cli/main.js'].map((file) => `${'../'.repeat(folder.split('/').length)}console/${file}`);
  expect(refused(folder, console).toSorted()).toEqual(console.toSorted());
});

test('the linter refuses the stores and the command line in the server of the page, and takes core and Nest', () => {
  const taken = ['../../lib/core/errors.js', '../../lib/nest/lock.service.js'];
  const others = ['../../lib/stores/redis/redis-lock-store.js', '../../lib/otel/index.js', '../cli/main.js'];
  expect(refused('console/page', [...taken, ...others]).toSorted()).toEqual(others.toSorted());
});
