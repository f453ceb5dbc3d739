// The tests start real servers, and build a clock for some of them: finds redis-server, a C compiler, PostgreSQL,
// pgbouncer, MariaDB, Chromium, Prometheus, NATS and zsh, installs them where it may, or says what to install.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';

const NEEDED = [
  {
    command: 'redis-server',
    packages: ['redis-server'],
    missing:
      'The tests need redis-server 6 or later on the PATH: install it with your package manager (apt-get install redis-server, brew install redis).',
  },
  {
    command: 'cc',
    packages: ['gcc', 'libc6-dev'],
    missing:
      'The tests of clocks need a C compiler called cc on the PATH: install it with your package manager (apt-get install gcc libc6-dev).',
  },
  {
    command: 'initdb',
    // With it comes openssl, which makes certificates for tests.
    packages: ['postgresql', 'procps'],
    missing:
      'The tests of PostgreSQL need its server, 13 or later: install it with your package manager (apt-get install postgresql, brew install postgresql).',
  },
  {
    command: 'pgbouncer',
    packages: ['pgbouncer'],
    missing:
      'The tests behind pgbouncer need it: install it with your package manager (apt-get install pgbouncer, brew install pgbouncer).',
  },
  {
    command: 'mariadbd',
    packages: ['mariadb-server'],
    missing:
      'The tests of MySQL need MariaDB, 10.6 or later: install it with your package manager (apt-get install mariadb-server, brew install mariadb).',
  },
  {
    command: 'chromium',
    packages: ['chromium'],
    missing: 'The tests of the page need Chromium as /usr/bin/chromium: install it with your package manager (apt-get install chromium).',
  },
  {
    // It comes with promtool.
    command: 'prometheus',
    packages: ['prometheus'],
    missing:
      'The tests of the metrics need prometheus and promtool on the PATH: install it with your package manager (apt-get install prometheus, brew install prometheus).',
  },
  {
    command: 'nats-server',
    packages: ['nats-server'],
    missing: 'The tests of tickets over NATS need its server: install it with your package manager (apt-get install nats-server).',
  },
  {
    command: 'zsh',
    packages: ['zsh'],
    missing:
      'The tests of its completion need zsh; they are skipped without it: install it with your package manager (apt-get install zsh).',
  },
];

/** Debian keeps the servers of PostgreSQL off the PATH, and pgbouncer where only root looks. */
const DEBIAN = '/usr/lib/postgresql';
const FOLDERS = [...(existsSync(DEBIAN) ? readdirSync(DEBIAN) : []).map((version) => `${DEBIAN}/${version}/bin/`), '/usr/sbin/', ''];

function exists({ command }) {
  return FOLDERS.some((folder) => spawnSync(folder + command, ['--version']).status === 0);
}

const toInstall = NEEDED.filter((tool) => !exists(tool));
if (toInstall.length > 0 && process.getuid?.() === 0 && spawnSync('apt-get', ['--version']).status === 0) {
  console.log(`${toInstall.map(({ command }) => command).join(' and ')}: missing; installing with apt-get …`);
  spawnSync('apt-get', ['update', '-qq'], { stdio: 'inherit' });
  // Debian starts servers of its own after the installation; the tests start theirs. PostgreSQL's is not even made.
  const clusters = '/etc/postgresql-common/createcluster.d';
  mkdirSync(clusters, { recursive: true });
  writeFileSync(`${clusters}/tests.conf`, 'create_main_cluster = false\n');
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  const packages = toInstall.flatMap((tool) => tool.packages);
  spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages], { stdio: 'inherit', env });
  rmSync(`${clusters}/tests.conf`);
}
for (const tool of NEEDED.filter((needed) => !exists(needed))) {
  console.error(tool.missing);
  // Without the others only their own tests fail.
  process.exitCode = tool.command === 'redis-server' ? 1 : process.exitCode;
}
