import { build } from 'esbuild';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { relative, resolve } from 'node:path';

/** A defect put into a source: the first text, which has to be there, becomes the second. */
export type Edit = readonly [file: string, from: string, to: string];

/**
 * Bundles the exports of `entry`, with `edits` made to the sources, to the code of a CommonJS module that requires the
 * `external` packages.
 */
export async function bundle(entry: string, external: readonly string[], edits: readonly Edit[]): Promise<string> {
  const left = new Set(edits);
  const { outputFiles } = await build({
    stdin: { contents: entry, resolveDir: resolve('lib'), loader: 'ts' },
    bundle: true,
    write: false,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    external: [...external],
    plugins: [
      {
        name: 'edits',
        setup: ({ onLoad }) => {
          onLoad({ filter: /lib.*\.ts$/ }, async ({ path }) => {
            let contents = await readFile(path, 'utf8');
            for (const edit of edits.filter(([file]) => file === relative(resolve(), path))) {
              const [, from, to] = edit;
              if (contents.includes(from)) {
                left.delete(edit);
                contents = contents.replace(from, () => to);
              }
            }
            return { contents, loader: 'ts' };
          });
        },
      },
    ],
  });
  for (const [file, from] of left) {
    throw new Error(`${file} has no text "${from}" any more. Make the defect out of what is there now.`);
  }
  return outputFiles[0]?.text ?? '';
}

/**
 * Loads a copy of the exports of `entry`, with `edits` made to the sources. Clients of Redis have to be given to it: it
 * loads none.
 */
export async function loadWith<Exports>(entry: string, edits: readonly Edit[]): Promise<Exports> {
  const code = await bundle(entry, ['ioredis'], edits);
  const module = { exports: {} as Exports };
  // oxlint-disable-next-line typescript/no-implied-eval
  new Function('require', 'module', 'exports', code)(createRequire(resolve('package.json')), module, module.exports);
  return module.exports;
}
