import { build } from 'esbuild';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const NAME = 'nestjs-distributed-lock';
type Entry = string | { readonly import: { readonly default: string } };
const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as { exports: Readonly<Record<string, Entry>> };
/** The packages that a bundle of an application has anyway, or loads only where they are used. */
const EXTERNAL = ['@nestjs/*', 'rxjs', 'reflect-metadata', 'ioredis'];

/** How many bytes one import of a name brings into a minified bundle, and from which files. */
async function bundled(name: string): Promise<{ bytes: number; files: string[] }> {
  const contents =
    name === '*' ? `import * as all from '${NAME}'; console.log(all);` : `import { ${name} } from '${NAME}'; console.log(${name});`;
  const { metafile } = await build({
    stdin: { contents, resolveDir: '.' },
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'node',
    external: EXTERNAL,
    logLevel: 'error',
  });
  const [{ bytes, inputs }] = Object.values(metafile.outputs) as [(typeof metafile.outputs)[string]];
  const files = Object.entries(inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  return { bytes, files: files.map(([file]) => file) };
}

/** The output of a script in a process of its own. */
function run(script: string, type: 'module' | 'commonjs'): unknown {
  const output = execFileSync(process.execPath, [`--input-type=${type}`, '--eval', script], { encoding: 'utf8' });
  return JSON.parse(output.trim());
}

describe('one import brings into a bundle at most', () => {
  test.each([
    ['lockKey', 5],
    ['outsideLocks', 4],
    ['isLockError', 4],
    ['LOCK_CHANNEL', 4],
    ['MemoryLockStore', 18],
    ['RedisLockStore', 81],
    ['LockModule', 140],
    ['DistributedLock', 256],
    ['*', 362],
  ])('for %s %i KiB', async (name, mostKib) => {
    const { bytes } = await bundled(name);
    expect(bytes / 1_024).toBeLessThan(mostKib);
  });

  test('no parser, except with @DistributedLock', async () => {
    const parsers = async (name: string): Promise<string[]> => (await bundled(name)).files.filter((file) => file.includes('acorn'));
    expect(await parsers('LockModule')).toEqual([]);
    expect(await parsers('DistributedLock')).toContainEqual(expect.stringContaining('node_modules/acorn/'));
  });
});

test('a cold start reads at most 42 files of the package', async () => {
  const { files } = await bundled('*');
  expect(files.filter((file) => file.startsWith('dist/')).length).toBeLessThanOrEqual(42);
});

describe.each(['module', 'commonjs'] as const)('an application as %s', (type) => {
  const load = (what: string): string =>
    type === 'module'
      ? `const { createRequire } = await import('node:module'); const it = await import('${what}');`
      : `const it = require('${what}');`;
  const cache = type === 'module' ? `createRequire('${process.cwd()}/').cache` : 'require.cache';

  test.each([
    ['no placeholder', 'daily-report', false],
    ['a parameter that @LockKey names', 'report:<day>', false],
    ['a parameter', 'report:<customerId>', true],
  ])('loads a parser only where a template names a parameter: with %s', (_, template, loads) => {
    const script = `
      ${load('reflect-metadata')}
      {
        ${load(NAME)}
        class Reports {
          async make(customerId, day) {}
        }
        it.LockKey('day')(Reports.prototype, 'make', 1);
        it.DistributedLock('${template}')(Reports.prototype, 'make', Object.getOwnPropertyDescriptor(Reports.prototype, 'make'));
        console.log(JSON.stringify(Object.keys(${cache}).some((file) => file.includes('/node_modules/acorn/'))));
      }`;
    expect(run(script, type)).toBe(loads);
  });

  test('gets from import and from require one and the same', () => {
    const script = `
      const { createRequire } = await import('node:module');
      const required = createRequire('${process.cwd()}/')('${NAME}');
      const imported = await import('${NAME}');
      console.log(JSON.stringify(Object.keys(imported).filter((name) => imported[name] !== required[name])));`;
    expect(run(type === 'module' ? script : `(async () => {${script}})()`, type)).toEqual([]);
  });
});

test.each(['esm', 'cjs'])('the entry points in dist/%s export each class under its own name', (format) => {
  const paths = Object.values(exports).flatMap((entry) => (typeof entry === 'string' ? [] : entry.import.default));
  const script = `
    const found = [];
    for (const path of ${JSON.stringify(paths)}) {
      const built = await import('${process.cwd()}/' + path.replace('/esm/', '/${format}/'));
      for (const [name, value] of Object.entries(built)) {
        found.push([path, name, typeof value === 'function' ? value.name : name]);
      }
    }
    console.log(JSON.stringify(found));`;
  const found = (run(script, 'module') as [string, string, string][]).filter(([, name]) => !['default', 'module.exports'].includes(name));
  expect(new Set(found.map(([path]) => path)).size).toBe(paths.length);
  expect(found.filter(([, name, called]) => name !== called)).toEqual([]);
});
