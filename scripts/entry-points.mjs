// The list of the entry points: what may be imported, and its source. `node scripts/entry-points.mjs` writes the list
// into package.json, as `exports` and for older resolvers as `typesVersions`, and into test/tsconfig.json.
import { readFileSync, writeFileSync } from 'node:fs';

export const ENTRY_POINTS = {
  '.': 'lib/index.ts',
  './mysql': 'lib/mysql/index.ts',
  './otel': 'lib/operate/otel/index.ts',
  './page': 'console/page/index.ts',
  './postgres': 'lib/postgres/index.ts',
  './prometheus': 'lib/operate/prometheus/index.ts',
  './quorum': 'lib/quorum/index.ts',
  './store-contract': 'lib/contract/index.ts',
  './testing': 'lib/testing/index.ts',
  './tickets': 'lib/tickets/index.ts',
};

/** The source of each name that users import. */
export const SOURCES = Object.fromEntries(
  Object.entries(ENTRY_POINTS).map(([path, source]) => [`nestjs-distributed-lock${path.slice(1)}`, source]),
);

/** In the package, what is in `lib` and `console` stands side by side. */
const builtAs = (source, format, ending) => source.replace(/^\w+\/(.*)\.ts$/, `./dist/${format}/$1.${ending}`);

/** `exports` of package.json. `module-sync` is Node's, and `module` that of bundlers. */
export function exportsOf(entries) {
  const paths = Object.entries(entries).map(([path, source]) => {
    const [esm, cjs] = ['esm', 'cjs'].map((format) => ({
      types: builtAs(source, format, 'd.ts'),
      default: builtAs(source, format, 'js'),
    }));
    return [path, { 'module-sync': esm, module: esm, import: esm, require: cjs }];
  });
  return { ...Object.fromEntries(paths), './package.json': './package.json' };
}

/** `typesVersions` of package.json: TypeScript with `moduleResolution: node` reads no `exports`. */
export function typesVersionsOf(entries) {
  const others = Object.entries(entries).filter(([path]) => path !== '.');
  return { '*': Object.fromEntries(others.map(([path, source]) => [path.slice(2), [builtAs(source, 'cjs', 'd.ts')]])) };
}

/** `paths` of test/tsconfig.json. */
export function pathsOf(sources) {
  return Object.fromEntries(Object.entries(sources).map(([name, source]) => [name, [`../${source}`]]));
}

function change(file, edit) {
  const value = JSON.parse(readFileSync(file, 'utf8'));
  edit(value);
  writeFileSync(file, `${JSON.stringify(value, undefined, 2)}\n`);
}

if (process.argv[1] === import.meta.filename) {
  change('package.json', (manifest) => {
    manifest.exports = exportsOf(ENTRY_POINTS);
    manifest.typesVersions = typesVersionsOf(ENTRY_POINTS);
  });
  change('test/tsconfig.json', ({ compilerOptions }) => {
    compilerOptions.paths = pathsOf(SOURCES);
  });
}
