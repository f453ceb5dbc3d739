import { existsSync, readFileSync } from 'node:fs';
import { filesBelow, readPage } from './pages';

const { text } = readPage('docs/architecture.md');
const sources = filesBelow('lib', '.ts').map((path) => readFileSync(path, 'utf8'));

test('every file and folder that the page names is there', () => {
  const paths = [...text.matchAll(/`((?:lib|test|etc|docs|bench|sample-app|scripts|examples)\/[\w./-]+)`/g)].map(
    ([, path]) => path as string,
  );
  expect(paths.length).toBeGreaterThan(20);
  expect(paths.filter((path) => !existsSync(path))).toEqual([]);
});

test('every member that the page names is one of its class', () => {
  const members = [...text.matchAll(/`((?!Class)[A-Z]\w+)\.(#?\w+)/g)].map(
    ([, owner, member]) => [owner as string, member as string] as const,
  );
  expect(members.length).toBeGreaterThan(5);
  const missing = members.filter(
    ([owner, member]) =>
      !sources.some((source) => new RegExp(`(class|interface) ${owner}\\b`).test(source) && new RegExp(`[ .]${member}\\b`).test(source)),
  );
  expect(missing).toEqual([]);
});
