import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { stop } from 'esbuild';
import { DEFECTS } from './defects.js';
import { explore } from './explorer.js';
import { reportOf } from './report.js';
import { SCOPES, type ScopeName } from './scope.js';
import { Server } from './server.js';

const USAGE = `npm run explore -- [--states N] [--scope NAME] [--defects]
  Looks at every state of one to four processes that lock one key or two, or share one, breadth first, and prints the shortest way to one that breaks a promise.
  --states   the most states of each scope; default: 250000
  --scope    one of ${Object.keys(SCOPES).join(', ')}; default: all of them, as many at once as there are cores
  --defects  plants each known defect of the lock table instead, and prints the shortest way to it`;

const { values } = parseArgs({
  options: { states: { type: 'string' }, scope: { type: 'string' }, defects: { type: 'boolean' }, help: { type: 'boolean' } },
});
const states = Number(values.states ?? 250_000);
if (values.help || !Number.isInteger(states) || states < 1 || (values.scope !== undefined && !(values.scope in SCOPES))) {
  console.error(USAGE);
  process.exitCode = values.help ? 0 : 2;
} else if (values.defects) {
  await findDefects(states);
} else if (values.scope === undefined) {
  await exploreAll(Object.keys(SCOPES), states);
} else {
  await exploreOne(values.scope as ScopeName, states);
}
await stop();

async function exploreOne(name: ScopeName, mostStates: number): Promise<void> {
  const startedAt = performance.now();
  const exploration = explore(SCOPES[name], await Server.with(), mostStates);
  console.log(reportOf(SCOPES[name], exploration, performance.now() - startedAt));
  process.exitCode = exploration.violation ? 1 : 0;
}

/** Each scope in a process of its own. */
async function exploreAll(names: string[], mostStates: number): Promise<void> {
  const run = async (): Promise<void> => {
    for (let name = names.shift(); name !== undefined; name = names.shift()) {
      const child = promisify(execFile)(process.execPath, [
        ...process.execArgv,
        fileURLToPath(import.meta.url),
        '--scope',
        name,
        '--states',
        String(mostStates),
      ]);
      const { stdout, stderr } = await child.catch((failed: { stdout: string; stderr: string }) => {
        process.exitCode = 1;
        return failed;
      });
      process.stdout.write(stdout + stderr);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, run));
}

async function findDefects(mostStates: number): Promise<void> {
  for (const { defect, edits, scope } of DEFECTS) {
    const startedAt = performance.now();
    const exploration = explore(scope, await Server.with(edits), mostStates);
    console.log(
      `${exploration.violation ? 'FOUND' : 'MISSED'}  ${defect}\n${reportOf(scope, exploration, performance.now() - startedAt)}\n`,
    );
    process.exitCode ||= exploration.violation ? 0 : 1;
  }
}
