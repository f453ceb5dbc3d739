import { PGlite } from '@electric-sql/pglite';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const { version } = JSON.parse(readFileSync('node_modules/@electric-sql/pglite/package.json', 'utf8')) as { version: string };
const CACHE = '.cache';
const FILES = join(CACHE, `pglite-${version}.tar`);

/** An empty PGlite. To initialize its files takes two seconds of a processor: that is done once, and kept. */
export async function initializedPglite(): Promise<PGlite> {
  if (!existsSync(FILES)) {
    await keepFiles();
  }
  return PGlite.create({ loadDataDir: new Blob([readFileSync(FILES)]) });
}

async function keepFiles(): Promise<void> {
  const pglite = await PGlite.create();
  const dump = await pglite.dumpDataDir('none');
  await pglite.close();
  mkdirSync(CACHE, { recursive: true });
  // Several suites may do it at the same time.
  const unfinished = `${FILES}-${process.pid}`;
  writeFileSync(unfinished, new Uint8Array(await dump.arrayBuffer()));
  renameSync(unfinished, FILES);
}
