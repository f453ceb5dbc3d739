import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const FILES = ['dist/page/app.js', 'dist/page/app.css'].map((path) => readFileSync(path));

function sum(sizes: readonly number[]): number {
  return sizes.reduce((all, size) => all + size, 0);
}

test('the front end has 80 kB at most, and 26 KiB compressed', () => {
  expect(sum(FILES.map(({ length }) => length))).toBeLessThan(80_000);
  expect(sum(FILES.map((file) => gzipSync(file, { level: 9 }).length))).toBeLessThan(26 * 1_024);
});

test('both formats of the package have one copy of it, and nothing of it comes from elsewhere', () => {
  const texts = FILES.map(String);
  for (const format of ['esm', 'cjs']) {
    const script = `import { APP_FILES } from './dist/${format}/page/app-files.js'; console.log(JSON.stringify(Object.values(APP_FILES)));`;
    const output = execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' });
    expect(JSON.parse(output)).toEqual(texts);
  }
  expect(readFileSync('dist/esm/page/app-files.js').length).toBeLessThan(200);
  expect(/url\(["']?(?!["']?#)|@import|https?:(?!\/\/www\.w3\.org\/)/.test(texts.join(''))).toBe(false);
});
