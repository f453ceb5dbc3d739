// Prints the lines of code by folder: no comment, no blank line; and the sum of the reading order of
// docs/architecture.md.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { argv } from 'node:process';
import { pathToFileURL } from 'node:url';

/** The lines of a source of TypeScript that are code. */
export function codeLines(source) {
  let isComment = false;
  return source.split('\n').filter((raw) => {
    const line = raw.trim();
    const begins = !isComment && line.startsWith('/*');
    const isCode = !isComment && !begins && line !== '' && !line.startsWith('//');
    isComment = (isComment || begins) && !line.includes('*/');
    return isCode;
  }).length;
}

const namesIn = (text) => [...text.matchAll(/^(?:\d+\.|-) `([^`]+\.ts)`: \S/gm)].map(([, name]) => name);

/** The files that docs/architecture.md names in its reading order, and those beside it: their paths in lib. */
export function readingOrder() {
  const map = readFileSync('docs/architecture.md', 'utf8');
  const [, order = '', beside = ''] = map.split(/^## An afternoon.*$|^Beside them.*$|^## The four ways.*$/m);
  return { order: namesIn(order), beside: namesIn(beside) };
}

/** The lines of code of a file in lib. */
export const linesOf = (file) => codeLines(readFileSync(join('lib', file), 'utf8'));

const folderOf = (file) => dirname(file).split('/').slice(0, 2).join('/');

function print() {
  const files = readdirSync('lib', { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file));
  for (const folder of [...new Set(files.map(folderOf))].toSorted()) {
    console.log(sumOf(files.filter((file) => folderOf(file) === folder)), folder === '.' ? 'lib itself' : `lib/${folder}`);
  }
  console.log(sumOf(files), 'lib');
  console.log(sumOf(readingOrder().order), 'the reading order');
}

const sumOf = (files) => String(files.reduce((sum, file) => sum + linesOf(file), 0)).padStart(6);

if (import.meta.url === pathToFileURL(argv[1] ?? '').href) {
  print();
}
