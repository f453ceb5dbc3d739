import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { blocksOf, filesBelow, PAGES, type Page } from './pages';

const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };

/** Without indentation and blank lines, so that a block may stand inside a class. */
function lines(text: string): string {
  return `\n${text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
    .join('\n')}\n`;
}

/** Compiled and run by `test/package/coming-from.long.spec.ts`, with packages that only its project has. */
const COMING_FROM = 'test/package/fixtures/coming-from/services';

/** The files whose code a test runs against the libraries that these pages name. */
const RUN = [
  ...['recipes', 'advisory-locks', 'client-signal', 'functions', 'idempotency', 'single-flight', 'transactions', 'windows'].map(
    (name) => `test/readme/${name}.ts`,
  ),
  'test/transaction/recipes.ts',
  ...filesBelow(COMING_FROM, '.ts'),
];
const PAGES_THAT_RUN = new Set(['README.md', 'docs/recipes.md', 'docs/transactions.md', 'docs/coming-from.md']);

const compiled = ['lib', 'console', 'test', 'sample-app', 'examples']
  .filter((folder) => existsSync(folder))
  .flatMap((folder) => filesBelow(folder, '.ts'))
  .filter((path) => !path.endsWith('.d.ts') && (!path.startsWith('test/package/fixtures/') || path.startsWith(COMING_FROM)))
  .map((path) => ({ path, text: lines(readFileSync(path, 'utf8')) }));

/** A block of the README that names its file is pasted and run by `quick-start.long.spec.ts`. */
const isPasted = (page: Page, block: string): boolean => page.path === 'README.md' && block.startsWith('// src/');

const blocks = PAGES.flatMap((page) =>
  blocksOf(page, 'ts')
    .filter((block) => !isPasted(page, block))
    .map((block) => [page.path, block.split('\n')[0], block] as const),
);

test.each(blocks)('%s: the block that starts with %p is compiled, and run where it is a recipe', (page, _start, block) => {
  const files = compiled.filter(({ text }) => text.includes(lines(block))).map(({ path }) => path);
  expect(files).not.toEqual([]);
  if (PAGES_THAT_RUN.has(page)) {
    expect(RUN.filter((path) => files.includes(path))).not.toEqual([]);
  }
});

test('the examples of the service say who calls, so that errors name more than a process; but for those of tickets', () => {
  const examples = blocks.filter(([page, , block]) => /^(README|docs\/locking)\.md$/.test(page) && /\.(withLock|acquire)\(/.test(block));
  expect(examples.length).toBeGreaterThan(3);
  const unnamed = examples.filter(([, , block]) => !block.includes('ticket') && !block.includes('by: '));
  expect(unnamed).toEqual([]);
});

test('the pages show code', () => {
  expect(blocks.length).toBeGreaterThan(30);
});

test.each(PAGES)('every npm script that $path names exists', ({ text }) => {
  const named = [...text.matchAll(/npm (?:run )?(start|test|(?<=run )[\w:-]+)/g)].map(([, name]) => name as string);
  expect(Object.keys(scripts)).toEqual(expect.arrayContaining(named));
});

/** The anchor of a heading, as GitHub makes it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, '')
    .trim()
    .replaceAll(/\s/g, '-');
}

function linksOf({ text }: Page): string[] {
  return [...text.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)].map(([, target]) => target as string);
}

test.each(PAGES)('every link inside the repository leads somewhere, in $path', (page) => {
  const dead = linksOf(page).filter((link) => {
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? page.path : normalize(join(dirname(page.path), path));
    const isThere = existsSync(target);
    return !isThere || (anchor !== undefined && !anchorsIn(target).includes(anchor));
  });
  expect(dead).toEqual([]);
});

function anchorsIn(path: string): string[] {
  return [...readFileSync(path, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading]) => anchorOf(heading as string));
}

test.each(PAGES)('every file and folder that $path names is there', ({ text }) => {
  const named = [...text.matchAll(/`((?:lib|test|etc|bench|examples|sample-app|scripts)\/[\w./-]+)`/g)].map(([, path]) => path as string);
  expect(named.filter((path) => !existsSync(path))).toEqual([]);
});

test.each(PAGES)('no line of $path has more than 120 columns, but for code', ({ text }) => {
  const prose = text.replaceAll(/^ *```.*?^ *```/gms, '');
  expect(prose.split('\n').filter((line) => [...line].length > 120)).toEqual([]);
});

test('every page of docs is linked from another page', () => {
  const linked = new Set(
    PAGES.flatMap((page) => linksOf(page).map((link) => normalize(join(dirname(page.path), link.split('#')[0] as string)))),
  );
  const pages = PAGES.map(({ path }) => path).filter((path) => path.startsWith('docs/'));
  expect(pages.filter((path) => !linked.has(path))).toEqual([]);
});
