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
  nest: NEST,
  page: NEST,
  tickets: NEST,
  otel: ['@opentelemetry/api'],
  prometheus: ['prom-client'],
  'stores/redis': ['ioredis'],
  cli: ['pg'],
};

const foldersOf = (folder: string): string[] =>
  readdirSync(join('lib', folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(folder, name));
const folders = [
  ...foldersOf('.').filter((name) => name !== 'stores' && name !== 'core'),
  ...foldersOf('core'),
  ...foldersOf('stores'),
  'stores/postgres/functions',
  'stores/mysql/procedures',
];

let root: string;

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'layers-'));
  copyFileSync('.oxlintrc.json', join(root, '.oxlintrc.json'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** The imports that the linter refuses in a file of a folder. */
function refused(folder: string, imports: readonly string[]): string[] {
  mkdirSync(join(root, 'lib', folder), { recursive: true });
  const file = join('lib', folder, 'probe.ts');
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

test.each(folders)('the linter refuses in lib/%s the packages that it must not know', (folder) => {
  const expected = PACKAGES.filter((name) => !(MAY_IMPORT[folder] ?? []).includes(name));
  expect(refused(folder, PACKAGES).toSorted()).toEqual(expected.toSorted());
});

test.each(folders.filter((folder) => folder.startsWith('stores/')))('the linter refuses in lib/%s what stands above stores', (folder) => {
  const up = '../'.repeat(folder.split('/').length);
  const above = ['nest/lock.module.js', 'page/index.js', 'cli/main.js', 'otel/index.js'].map((file) => up + file);
  expect(refused(folder, above).toSorted()).toEqual(above.toSorted());
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
  expect(foldersOf('core').toSorted()).toEqual(
    Object.keys(STOREYS)
      .map((name) => join('core', name))
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
  expect(refused(join('core', storey), [...above, ...below.map((name) => `../${name}/probe.js`)]).toSorted()).toEqual(above.toSorted());
});

test.each(['leader', 'peers'])('the linter refuses in lib/%s all but core', (folder) => {
  const above = ['stores/kit/protocol.js', 'nest/lock.module.js', 'locks.js'].map((file) => `../${file}`);
  expect(refused(folder, [...above, '../core/entering/frame.js']).toSorted()).toEqual(above.toSorted());
});
