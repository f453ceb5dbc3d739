import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { SEED } from '../support/random';
import { until } from '../support/until';
import { MUTANTS } from './mutants';

/** `npm run torture` runs for as long as it is told to. */
const RUNS = ['single', 'sentinel', 'cluster', 'quorum', 'new-quorum', 'postgres', 'mysql'].map((topology) => [topology, 12] as const);
const run = promisify(execFile);
const COMMAND = ['--import', './test/support/typescript.mjs', '--enable-source-maps', 'test/torture/main.ts'];

/** The words that a command prints; none where it fails because nothing was found. */
async function wordsOf(file: string, ...args: string[]): Promise<string[]> {
  const { stdout } = await run(file, args).catch((error: { stdout: string }) => error);
  return stdout.split(/\s+/).filter(Boolean);
}

/** The output of the command, whether or not it finds something. */
async function torture(...args: string[]): Promise<string> {
  const { stdout, stderr } = await run(process.execPath, [...COMMAND, '--seed', String(SEED), ...args]).catch(
    (error: { stdout: string; stderr: string }) => error,
  );
  return stdout + stderr;
}

/** Each run takes its servers and workers some seconds besides. */
test.each(RUNS)(
  '%s: %i seconds of faults show no violation',
  async (topology, seconds) => {
    const output = await torture('--seconds', String(seconds), '--topology', topology);
    process.stdout.write(output);
    expect(output).toMatch(/^ {2}0 violations$/m);
  },
  240_000,
);

test('without faults no lease is lost and nobody is passed over', async () => {
  const output = await torture('--seconds', '5', '--topology', 'single', '--nemesis', 'none');
  process.stdout.write(output);
  expect(output).toMatch(/^ {2}0 violations$/m);
  // A leader that does not obey is told that it lost its lock when its process ends.
  expect(output).toMatch(/granted, of which [01] lost;/);
  expect(output).toMatch(/^ {2}control {3}0 of [1-9]\d* updates/m);
}, 240_000);

test.each(['incr-fences', 'deletes-anything', 'no-recheck', 'two-of-five', 'leads-twice', 'stays-away'])(
  'the defect %s is caught',
  async (name) => {
    expect(Object.keys(MUTANTS)).toContain(name);
    const output = await torture('--seconds', '12', '--mutant', name);
    process.stdout.write(output);
    expect(output).toMatch(new RegExp(`^CAUGHT {2}${name}`, 'm'));
  },
  240_000,
);

test('whoever stops the command stops its servers and workers', async () => {
  const command = spawn(process.execPath, [...COMMAND, '--seconds', '30', '--topology', 'single'], { stdio: 'ignore' });
  let children: string[] = [];
  await until('two servers and four workers', async () => {
    children = await wordsOf('pgrep', '-P', String(command.pid));
    return children.length === 6;
  });
  command.kill('SIGTERM');
  await once(command, 'exit');
  // One that has ended stays as a zombie until somebody takes notice.
  await until('that all have ended', async () =>
    (await wordsOf('ps', '-o', 'stat=', '-p', children.join(','))).every((is) => is.startsWith('Z')),
  );
}, 240_000);

test('an unknown name is refused, with those that exist', async () => {
  expect(await torture('--mutant', 'nobody')).toMatch(/There is no mutant 'nobody'\.[^]*incr-fences/);
  expect(await torture('--nemesis', 'rain')).toMatch(/There is no fault 'rain'\.[^]*blackhole/);
  expect(await torture('--topology', 'ring')).toMatch(/There is no topology 'ring'\.[^]*sentinel/);
  expect(await torture('--mutant', 'incr-fences', '--topology', 'cluster')).toMatch(/Leave out --topology/);
});
