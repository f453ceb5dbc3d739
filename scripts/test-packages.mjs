// Installs the packages of test/package.json, which only long tests and checks need, where its lock file has changed.
// With --where-needed, it does so only for the tests of a client of Redis that stands there.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

const FOLDER = 'test';
const INSTALLED = `${FOLDER}/node_modules/.installed`;

const hash = createHash('sha256');
['package.json', 'package-lock.json', '.npmrc'].forEach((name) => hash.update(readFileSync(`${FOLDER}/${name}`)));
const digest = hash.digest('hex');
const isInstalled = existsSync(INSTALLED) && readFileSync(INSTALLED, 'utf8') === digest;
const isNeeded = !process.argv.includes('--where-needed') || process.env.TEST_REDIS_CLIENT !== undefined;
if (isNeeded && !isInstalled) {
  console.log(`Installing the packages of ${FOLDER}/package.json.`);
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: FOLDER, stdio: 'inherit' });
  if (status === 0) {
    writeFileSync(INSTALLED, digest);
  } else {
    console.error(`These packages are missing: \`npm ci\` in the folder ${FOLDER} ended with ${status}.`);
    process.exitCode = 1;
  }
}
