// The tests start real servers, and build a clock for some of them: finds redis-server and a C compiler, installs them where
// it may, or says what to install.
import { spawnSync } from 'node:child_process';

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
];

function exists({ command }) {
  return spawnSync(command, ['--version']).status === 0;
}

const toInstall = NEEDED.filter((tool) => !exists(tool));
if (toInstall.length > 0 && process.getuid?.() === 0 && spawnSync('apt-get', ['--version']).status === 0) {
  console.log(`${toInstall.map(({ command }) => command).join(' and ')}: missing; installing with apt-get …`);
  spawnSync('apt-get', ['update', '-qq'], { stdio: 'inherit' });
  // Debian starts a server of its own after the installation; the tests start theirs.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  const packages = toInstall.flatMap((tool) => tool.packages);
  spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages], { stdio: 'inherit', env });
}
for (const tool of NEEDED.filter((needed) => !exists(needed))) {
  console.error(tool.missing);
  // Without a compiler only the tests of clocks fail.
  process.exitCode = tool.command === 'redis-server' ? 1 : process.exitCode;
}
