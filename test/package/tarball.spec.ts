import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import { Workshop } from './consumer.js';
import { run } from './run.js';

const MOST_BYTES = 670_000;

const workshop = new Workshop();
const unpacked = mkdtempSync(join(tmpdir(), 'lock-tarball-'));
let files: ReadonlySet<string>;

beforeAll(async () => {
  await workshop.pack();
  await run('tar', ['-xzf', join(workshop.folder, 'package.tgz'), '-C', unpacked, '--strip-components=1'], { cwd: '.' });
  const entries = readdirSync(unpacked, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  files = new Set(entries.map(({ parentPath, name }) => posix.relative(unpacked, join(parentPath, name))));
}, 120_000);

afterAll(() => {
  workshop.clear();
  rmSync(unpacked, { recursive: true, force: true });
});

const read = (file: string): string => readFileSync(join(unpacked, file), 'utf8');
const named = (end: string): string[] => [...files].filter((file) => file.endsWith(end));

/** The files that `pattern` finds in the text of a file, relative to the package. */
function targets(file: string, pattern: RegExp): string[] {
  return [...read(file).matchAll(pattern)].map(([, target]) => posix.join(posix.dirname(file), (target as string).split('#')[0] as string));
}

test('has at most 670 kB', () => {
  expect(statSync(join(workshop.folder, 'package.tgz')).size).toBeLessThanOrEqual(MOST_BYTES);
});

test('each link in its pages leads to a file that it has', () => {
  const pages = named('.md');
  const links = pages.flatMap((page) => targets(page, /\]\((?!https?:|#)([^)\s]+)\)/g).map((target) => [page, target]));
  expect(links.length).toBeGreaterThan(50);
  expect(links.filter(([, target]) => !files.has(target as string))).toEqual([]);
});

test('each module and declaration that its files name is there, and each declaration is reached from package.json', () => {
  const { exports } = JSON.parse(read('package.json')) as { exports: Readonly<Record<string, Readonly<Record<string, object>> | string>> };
  const isThere = new Set<string>();
  const reach = (file: string): void => {
    if (!isThere.has(file)) {
      expect([...files]).toContain(file);
      isThere.add(file);
      const imports = targets(file, /(?:\bfrom|\bimport|\bimport\(|\brequire\() ?["'](\.{1,2}\/[^"'\n]+)["']/g);
      imports.forEach((target) => reach(file.endsWith('.d.ts') ? target.replace(/\.js$/, '.d.ts') : target));
    }
  };
  for (const conditions of Object.values(exports)) {
    const outcomes =
      typeof conditions === 'string' ? [conditions] : Object.values(conditions).flatMap((one) => Object.values(one) as string[]);
    outcomes.forEach((file) => reach(posix.normalize(file)));
  }
  expect(named('.d.ts').filter((file) => !isThere.has(file))).toEqual([]);
});
