import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}
const json = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'));
const ours = json('package.json') as Manifest;
const ofTests = Object.keys((json('test/package.json') as Manifest).dependencies);

test('a package is in the manifest of the project or in that of test', () => {
  expect(ofTests.length).toBeGreaterThan(20);
  const both = { ...ours.dependencies, ...ours.devDependencies, ...ours.peerDependencies };
  expect(ofTests.filter((name) => name in both)).toEqual([]);
});

/** Packages of which a second copy in one process would break something. */
const isShared = (name: string): boolean =>
  ['graphql', 'typescript'].includes(name) || name in (ours.peerDependencies ?? {}) || (/^@nestjs\//.test(name) && !ofTests.includes(name));

test('what test/package.json installs hides no package that there has to be once, and has few copies of them for itself', () => {
  const installed = Object.keys((json('test/package-lock.json') as { packages: object }).packages);
  const copies = installed.filter((path) => isShared(path.split('node_modules/').at(-1) as string));
  expect(copies.map((path) => path.replaceAll('node_modules/', ''))).toEqual([
    // Checks types with its own.
    '@arethetypeswrong/cli/typescript',
    // Needs this version; no test gives it a client of another.
    '@mikro-orm/postgresql/pg',
    '@nestjs/graphql/@nestjs/mapped-types',
    // Runs the tests in processes that do not see it.
    '@stryker-mutator/core/rxjs',
    // It keeps what it knows where the copy of the project does.
    'typeorm/reflect-metadata',
  ]);
});

/** The files that a file imports when it runs, and the packages. */
function importsOf(path: string): { files: string[]; packages: string[] } {
  const text = readFileSync(path, 'utf8').replaceAll(/^(?:import|export) type [^;]*;/gm, '');
  const names = [...text.matchAll(/(?:\bfrom |\bimport\(|^import )'([^']+)'/gm)].map(([, name]) => name as string);
  const files = names
    .filter((name) => name.startsWith('.'))
    .map((name) => join(dirname(path), name))
    .flatMap((name) =>
      [name, `${name}.ts`, name.replace(/\.js$/, '.ts')].filter((file) => /\.(m?ts|mjs|tsx)$/.test(file) && existsSync(file)),
    );
  const packages = names.filter((name) => !name.startsWith('.')).map((name) => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] as string);
  return { files, packages };
}

/** The packages of test/package.json that a file needs, with the file that imports them. */
function neededBy(path: string): string[] {
  const reached = new Set([path]);
  const found: string[] = [];
  for (const file of reached) {
    const { files, packages } = importsOf(file);
    files.forEach((each) => reached.add(each));
    found.push(...packages.filter((name) => ofTests.includes(name)).map((name) => `${path} needs ${name}, by ${file}`));
  }
  return found;
}

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(m?ts|mjs|tsx)$/.test(name) && !/(^|\/)(node_modules|dist)\//.test(name))
    .map((name) => join(folder, name));

test('no suite of `npm test` needs a package of test/package.json', () => {
  const suites = ['test', 'sample-app', 'examples'].flatMap(filesIn).filter((file) => /(?<!\.long)\.spec\.ts$/.test(file));
  expect(suites.length).toBeGreaterThan(150);
  expect(suites.flatMap(neededBy)).toEqual([]);
  expect(neededBy('test/transaction/libraries.long.spec.ts')).toContain(
    'test/transaction/libraries.long.spec.ts needs typeorm, by test/transaction/accounts.ts',
  );
});

test('nor does anything outside of test, but for the suite that examples have for vitest', () => {
  const files = ['lib', 'console', 'sample-app', 'examples', 'scripts'].flatMap(filesIn).filter((file) => !file.endsWith('.vitest.ts'));
  expect(files.flatMap(neededBy)).toEqual([]);
});
