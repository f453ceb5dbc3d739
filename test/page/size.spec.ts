import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const FILES = ['dist/page/app.js', 'dist/page/app.css'].map((path) => readFileSync(path));

function sum(sizes: readonly number[]): number {
  return sizes.reduce((all, size) => all + size, 0);
}

test('the front end has 60 kB at most, and 20 KiB compressed', () => {
  expect(sum(FILES.map(({ length }) => length))).toBeLessThan(60_000);
  expect(sum(FILES.map((file) => gzipSync(file, { level: 9 }).length))).toBeLessThan(20 * 1_024);
});

test('both formats of the package have it in them, and nothing of it comes from elsewhere', () => {
  for (const format of ['esm', 'cjs']) {
    const embedded = readFileSync(`dist/${format}/page/app-files.js`, 'utf8');
    for (const file of FILES) {
      expect(embedded.includes(JSON.stringify(file.toString()))).toBe(true);
    }
  }
  expect(/url\(["']?(?!["']?#)|@import|https?:(?!\/\/www\.w3\.org\/)/.test(FILES.map(String).join(''))).toBe(false);
});
