// The tests start real servers: finds redis-server, installs it where it may, or says what to install.
import { spawnSync } from 'node:child_process';

function exists() {
  return spawnSync('redis-server', ['--version']).status === 0;
}

if (!exists() && process.getuid?.() === 0 && spawnSync('apt-get', ['--version']).status === 0) {
  console.log('redis-server is missing; installing it with apt-get …');
  spawnSync('apt-get', ['update', '-qq'], { stdio: 'inherit' });
  // Debian starts a server of its own after the installation; the tests start theirs.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'redis-server'], { stdio: 'inherit', env });
}
if (!exists()) {
  console.error(
    'The tests need redis-server 6 or later on the PATH: install it with your package manager (apt-get install redis-server, brew install redis).',
  );
  process.exit(1);
}
