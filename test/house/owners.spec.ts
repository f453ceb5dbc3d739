import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const files = ['lib/core', 'lib/leader', 'lib/operate/peers']
  .flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }))
  .filter((entry) => entry.isFile())
  .map(({ parentPath, name }) => join(parentPath, name));

/** The fields of the classes in a source that code outside of its file could write. */
function writableFields(name: string, text: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isPropertyDeclaration(node) && !ts.isPrivateIdentifier(node.name)) {
      const kinds = (node.modifiers ?? []).map(({ kind }) => kind);
      if (!kinds.includes(ts.SyntaxKind.ReadonlyKeyword)) {
        found.push(`${name}: ${node.name.getText()}`);
      }
    }
    if (ts.isSetAccessor(node)) {
      found.push(`${name}: set ${node.name.getText()}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(name, text, ts.ScriptTarget.ES2022, true));
  return found;
}

test('each mutable field of core is written by the file that declares it', () => {
  expect(files.length).toBeGreaterThan(40);
  expect(files.flatMap((file) => writableFields(file, readFileSync(file, 'utf8')))).toEqual([]);
});

test('a field that others could write is found', () => {
  expect(writableFields('a.ts', 'class A { open = 1; readonly shut = 2; #own = 3; set size(n: number) {} }')).toEqual([
    'a.ts: open',
    'a.ts: set size',
  ]);
});
