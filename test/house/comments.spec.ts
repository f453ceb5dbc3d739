import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDERS = ['lib', 'console', 'test', 'sample-app', 'scripts', 'bench', 'examples'];
const COMMENT = /^\s*(\/\/|\/?\*)/;
/** An editor shows a comment without its neighbour: these words point to one. */
const POINTS_AWAY = /^\s*(?:\/\*\*|\/\/)\s+(?:\* )?(?:That|The same|What)\b/m;

const files = FOLDERS.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.([mc]?[jt]s|tsx)$/.test(file) && !/(^|\/)(node_modules|dist)\//.test(file))
    .map((file) => join(folder, file)),
).map((file) => ({ file, text: readFileSync(file, 'utf8') }));

test('no line of a comment has more than 120 columns', () => {
  expect(files.length).toBeGreaterThan(1_000);
  const wide = files.flatMap(({ file, text }) =>
    text.split('\n').flatMap((line, at) => (COMMENT.test(line) && line.length > 120 ? [`${file}:${at + 1}`] : [])),
  );
  expect(wide).toEqual([]);
});

test.each(['/** What a store promises. */', '  // That of a ticket', '/**\n * The same for a join.\n */'])(
  '%j begins with the name of no thing',
  (text) => {
    expect(text).toMatch(POINTS_AWAY);
  },
);

test('no comment begins with That, The same or What', () => {
  expect(files.flatMap(({ file, text }) => POINTS_AWAY.exec(text)?.[0].trim().concat(' in ', file) ?? [])).toEqual([]);
});
