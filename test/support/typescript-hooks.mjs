import { transform } from '@swc/core';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SOURCES } from '../../scripts/entry-points.mjs';

const ROOT = new URL('../../', import.meta.url);
/** Whether the program takes the library as it was built, as a user does, and not its sources: it starts sooner. */
const usesBuild = process.env.LIBRARY === 'built';
/** Deliberate defects, as a list of `[file, from, to]`: for the tests that have to notice them. */
const edits = JSON.parse(process.env.TYPESCRIPT_EDITS ?? '[]');

export async function resolve(specifier, context, next) {
  if (Object.hasOwn(SOURCES, specifier) && !usesBuild) {
    return next(new URL(SOURCES[specifier], ROOT).href, context);
  }
  if (/^\.{1,2}\//.test(specifier) && context.parentURL?.endsWith('.ts')) {
    const url = new URL(`${specifier.replace(/\.js$/, '')}.ts`, context.parentURL);
    if (existsSync(url)) {
      return next(url.href, context);
    }
  }
  return next(specifier, context);
}

export async function load(url, context, next) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) {
    return next(url, context);
  }
  const filename = fileURLToPath(url);
  const source = infect(await readFile(filename, 'utf8'), relative(fileURLToPath(ROOT), filename));
  const { code } = await transform(source, { filename });
  return { format: 'module', source: code, shortCircuit: true };
}

function infect(source, file) {
  return edits
    .filter(([edited]) => edited === file)
    .reduce((text, [, from, to]) => {
      if (!text.includes(from)) {
        throw new Error(`The mutant no longer fits ${file}: it has no "${from}". Correct the mutant.`);
      }
      return text.replaceAll(from, to);
    }, source);
}
