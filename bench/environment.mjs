import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { ioredisVersion } from './library.mjs';

/** What the figures depend on besides the code. */
export function environment(redis) {
  return {
    date: new Date().toISOString(),
    node: process.version,
    redis,
    cpu: cpus()[0].model,
    cores: cpus().length,
    versions: versions(),
  };
}

function versions() {
  const own = readJson('../package.json');
  const { dependencies } = readJson('package.json');
  return { [own.name]: own.version, ...dependencies, ioredis: ioredisVersion };
}

function readJson(path) {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));
}
