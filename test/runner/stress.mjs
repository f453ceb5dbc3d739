// Runs all tests several times beside busy loops, while each of their processes, servers included, stands still for 50
// to 500 ms about once a second: npm run test:stress -- [--runs 20] [--loops 2] [--seed N] [files…]. No test runs
// again: one that fails has a defect.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Freezer } from './freezer.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string', default: '20' },
    loops: { type: 'string', default: '2' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const [runs, loops, seed] = [values.runs, values.loops, values.seed].map(Number);
/** No run takes as long; its suites have limits of their own. */
const LIMIT_MS = 60 * 60_000;
const JEST = ['--experimental-vm-modules', 'node_modules/jest/bin/jest.js', '--filter=./test/runner/selection.cjs'];
const BUSY = ['-e', 'for (;;);'];

const folder = mkdtempSync(join(tmpdir(), 'stress-'));
const families = new Set();
let freezer;
process.on('exit', () => {
  // Who stands still ends itself when jest is gone, once it goes on.
  freezer?.stop();
  families.forEach(endFamily);
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => process.exit(130));
}
try {
  // Who freezes others is not to be kept from letting them go on.
  setPriority(-10);
} catch {
  // Only root may.
}

/** A process and whatever it starts. */
function startFamily(args, options) {
  const child = spawn(process.execPath, args, { detached: true, ...options });
  setPriority(child.pid, 0);
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

async function run(number) {
  const stopped = mkdtempSync(join(folder, 'stopped-'));
  const results = join(folder, `results-${number}.json`);
  const jest = startFamily([...JEST, '--json', `--outputFile=${results}`, ...positionals], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, TEST_ONCE: '1', TEST_STOPPED: stopped },
  });
  freezer = new Freezer({ root: jest.pid, stoppedByTests: stopped, seed: seed + number });
  const limit = setTimeout(() => endFamily(jest), LIMIT_MS);
  await once(jest, 'close');
  clearTimeout(limit);
  freezer.stop();
  families.delete(jest);
  return { ...readResults(results), stops: freezer.count };
}

function readResults(file) {
  try {
    const { numPassedTests, testResults } = JSON.parse(readFileSync(file, 'utf8'));
    const failed = testResults.flatMap(({ name, assertionResults, status }) => {
      const tests = assertionResults.filter((each) => each.status === 'failed').map(({ fullName }) => fullName);
      return (tests.length === 0 && status === 'failed' ? ['(the suite)'] : tests).map((test) => `${name}: ${test}`);
    });
    return { passed: numPassedTests, failed };
  } catch {
    return { passed: 0, failed: ['(the run has no result)'] };
  }
}

const lines = [];
const failures = new Map();
for (let number = 1; number <= runs; number++) {
  const busy = Array.from({ length: loops }, () => startFamily(BUSY, { stdio: 'ignore' }));
  const startedAt = performance.now();
  const { passed, failed, stops } = await run(number);
  busy.forEach(endFamily);
  const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1);
  lines.push(`run ${number}: ${passed} passed, ${failed.length} failed in ${minutes} minutes, ${stops} stops of processes`);
  console.log(lines.at(-1));
  for (const test of failed) {
    failures.set(test, (failures.get(test) ?? 0) + 1);
  }
}
console.log(`\n${lines.join('\n')}\nseed ${seed}`);
for (const [test, times] of failures) {
  console.log(`failed ${times} times: ${test}`);
}
process.exitCode = failures.size > 0 ? 1 : 0;
