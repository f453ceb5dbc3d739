// Runs all tests several times, the last of them beside busy loops: npm run test:stress -- [runs] [runs beside busy loops] [busy loops].
import { spawn } from 'node:child_process';
import { once } from 'node:events';

const [runs = 5, besideLoops = 2, loops = 2] = process.argv.slice(2).map(Number);
/** No run takes as long; its suites have limits of their own. */
const LIMIT_MS = 45 * 60_000;
const JEST = ['--experimental-vm-modules', 'node_modules/jest/bin/jest.js', '--filter=./test/runner/selection.cjs'];
const BUSY = ['-e', 'for (;;);'];

const families = new Set();
const endAll = () => families.forEach(endFamily);
process.on('exit', endAll);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => process.exit(130));
}

/** A process and whatever it starts. */
function startFamily(args, stdio) {
  const child = spawn(process.execPath, args, { detached: true, stdio });
  families.add(child);
  return child;
}

function endFamily(child) {
  families.delete(child);
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // None of it is left.
  }
}

async function run() {
  const jest = startFamily(JEST, ['ignore', 'pipe', 'inherit']);
  let output = '';
  jest.stdout.on('data', (text) => {
    output += text;
    process.stdout.write(text);
  });
  const limit = setTimeout(() => endFamily(jest), LIMIT_MS);
  const [code] = await once(jest, 'close');
  clearTimeout(limit);
  families.delete(jest);
  const again = output.match(/^ran again: /gm)?.length ?? 0;
  return { passed: code === 0, counts: output.match(/^\d+ passed, \d+ failed$/m)?.[0] ?? 'no result', again };
}

const lines = [];
for (let number = 1; number <= runs; number++) {
  const busy = number > runs - besideLoops ? Array.from({ length: loops }, () => startFamily(BUSY, 'ignore')) : [];
  const startedAt = performance.now();
  const { passed, counts, again } = await run();
  busy.forEach(endFamily);
  const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1);
  lines.push(
    `run ${number}: ${counts} in ${minutes} minutes, ${again} ran again${busy.length > 0 ? `, beside ${busy.length} busy loops` : ''}`,
  );
  process.exitCode = passed ? process.exitCode : 1;
}
console.log(lines.join('\n'));
