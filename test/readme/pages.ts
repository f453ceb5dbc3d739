import { readdirSync, readFileSync } from 'node:fs';

/** A page of the documentation. */
export interface Page {
  /** Its path from the root of the repository. */
  readonly path: string;
  readonly text: string;
}

export function readPage(path: string): Page {
  return { path, text: readFileSync(path, 'utf8') };
}

/** Every file of that ending below a folder that exists. */
export function filesBelow(folder: string, ending: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending) && !/(^|\/)(node_modules|dist)\//.test(name))
    .map((name) => `${folder}/${name}`);
}

/** The pages that users and contributors read. */
export const PAGES: readonly Page[] = [
  'README.md',
  ...filesBelow('docs', '.md'),
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'sample-app/README.md',
  'bench/README.md',
  ...filesBelow('lib', '.md'),
].map(readPage);

/** The blocks of one language, also those inside a list. */
export function blocksOf({ text }: Page, language: string): string[] {
  return [...text.matchAll(new RegExp(`^ *\`\`\`${language}\\n(.*?)^ *\`\`\``, 'gms'))].map(([, block]) => block as string);
}

/** The text between two headings of the second level. */
export function sectionOf({ path, text }: Page, heading: string): string {
  const start = text.indexOf(`\n## ${heading}\n`);
  if (start < 0) {
    throw new Error(`${path} has no section "${heading}".`);
  }
  const end = text.indexOf('\n## ', start + 1);
  return text.slice(start, end < 0 ? undefined : end);
}

/** The cells of the rows of the first table below a heading, without its head. */
export function tableBelow(page: Page, heading: string): string[][] {
  const rows = /^\|.*(?:\n\|.*)*/m.exec(sectionOf(page, heading))?.[0].split('\n') ?? [];
  return rows.slice(2).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}
