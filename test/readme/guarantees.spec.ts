import { existsSync, readFileSync } from 'node:fs';

const page = readFileSync('test/README.md', 'utf8');
/** A file, and the names of tests in it: `test/a.spec.ts`: "one", "another". */
const named = [...page.matchAll(/`((?:test|lib|sample-app)\/[^`]+\.ts)`:((?:\s+"[^"]+",?)+)/g)].flatMap(([, file, names]) =>
  [...(names as string).matchAll(/"([^"]+)"/g)].map(([, name]) => [file as string, name as string] as const),
);

test('the page names tests', () => {
  expect(named.length).toBeGreaterThan(100);
});

test.each(named)('%s has the test "%s"', (file, name) => {
  expect(readFileSync(file, 'utf8')).toContain(name.replace(/\s+/g, ' '));
});

test('every file that the page names is there', () => {
  const files = [...page.matchAll(/`((?:test|lib)\/[^`]+)`|\]\(\.\.\/([^)#]+)/g)].map(([, file, link]) => (file ?? link) as string);
  expect(files.filter((file) => !existsSync(file))).toEqual([]);
});
