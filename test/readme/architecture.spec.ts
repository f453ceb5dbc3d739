import { readFileSync } from 'node:fs';
import { filesBelow, readPage } from './pages';

const { text } = readPage('docs/architecture.md');
const sources = [...filesBelow('lib', '.ts'), ...filesBelow('console', '.ts')].map((path) => readFileSync(path, 'utf8'));

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
