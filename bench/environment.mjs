import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { ioredisVersion, mysql2Version, pgVersion } from './library.mjs';

/** The conditions that the figures depend on, besides the code. */
export function environment(redis, postgres, mysql) {
  return {
    date: new Date().toISOString(),
    node: process.version,
    redis,
    postgres,
    mysql,
    cpu: cpus()[0].model,
    cores: cpus().length,
    versions: versions(),
  };
}

function versions() {
  const own = readJson('../package.json');
  const { dependencies } = readJson('package.json');
  return { [own.name]: own.version, ...dependencies, ioredis: ioredisVersion, mysql2: mysql2Version, pg: pgVersion };
}

function readJson(path) {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));
}
