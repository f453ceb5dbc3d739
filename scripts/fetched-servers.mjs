// The servers of other suites of Debian that `scripts/fetch-servers.mjs` fetches, and how tests start one of them
// instead of the machine's.
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

const REDIS = { packages: ['redis-server'], programs: { 'redis-server': ['usr/bin/redis-server'] } };
const VALKEY = { packages: ['valkey-server'], programs: { 'redis-server': ['usr/bin/valkey-server'] } };
const MYSQL = { packages: ['mysql-server-core'], programs: { mysqld: ['usr/sbin/mysqld', '--basedir=$root/usr'] } };
const MARIADB = {
  packages: ['mariadb-server-core', 'mariadb-client-core'],
  programs: {
    mariadbd: ['usr/sbin/mariadbd', '--basedir=$root/usr'],
    'mariadb-install-db': ['usr/bin/mariadb-install-db', '--basedir=$root/usr'],
    my_print_defaults: ['usr/bin/my_print_defaults'],
    resolveip: ['usr/bin/resolveip'],
  },
};
const postgres = (version) => ({
  packages: [`postgresql-${version}`, `postgresql-client-${version}`],
  programs: Object.fromEntries(
    ['postgres', 'initdb', 'pg_basebackup'].map((name) => [name, [`usr/lib/postgresql/${version}/bin/${name}`]]),
  ),
});

/**
 * The name of each server, the suites of Debian that it comes from, its packages, and its programs by the names that
 * the tests call: where a package has them, and the arguments that come after all others. A name ends with the major
 * version: a suite may go on to the next one.
 */
export const SERVERS = {
  'mysql-9': { suites: ['sid'], ...MYSQL },
  'mariadb-11': { suites: ['trixie'], ...MARIADB },
  'postgres-17': { suites: ['trixie'], ...postgres(17) },
  'postgres-18': { suites: ['sid'], ...postgres(18) },
  'redis-8': { suites: ['sid'], ...REDIS },
  'valkey-8': { suites: ['bookworm', 'bookworm-backports'], ...VALKEY },
  'valkey-9': { suites: ['sid'], ...VALKEY },
};

/**
 * Outside of this folder: `npm ci` and a new checkout leave it. PostgreSQL runs as another user, who cannot look into
 * the home of root.
 */
const CACHE = process.getuid?.() === 0 ? '/var/cache' : (process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'));

/** The folder of a server; its layout is that of the number. */
export function folderOf(name) {
  return join(CACHE, 'nestjs-distributed-lock', '1', name);
}

/** The version of a server that was fetched; undefined where it was not. */
export function versionOf(name) {
  const file = join(folderOf(name), 'version');
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

/** The environment of tests that start this server where they start one of its kind. */
export function environmentOf(name) {
  return {
    TEST_SERVER: name,
    PATH: `${join(folderOf(name), 'bin')}${delimiter}${process.env.PATH ?? ''}`,
  };
}
