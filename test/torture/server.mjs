// Has a run start the server that `--server NAME` names, and fetches it. It is loaded before all else: topologies look
// at the environment when they are loaded.
import { spawnSync } from 'node:child_process';
import { environmentOf, SERVERS, versionOf } from '../../scripts/fetched-servers.mjs';

const name = process.argv.join('=').split('=--server=')[1]?.split('=')[0] ?? '';
if (Object.hasOwn(SERVERS, name)) {
  spawnSync(process.execPath, ['scripts/fetch-servers.mjs', name], { stdio: 'inherit' });
  if (versionOf(name) === undefined) {
    process.exit(1);
  }
  Object.assign(process.env, environmentOf(name));
}
