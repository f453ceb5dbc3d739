import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { MUTANTS } from './mutants';

const run = promisify(execFile);

/** What the command prints, whether or not it finds something. */
async function torture(...args: string[]): Promise<string> {
  const node = ['--import', './test/support/typescript.mjs', '--enable-source-maps', 'test/torture/main.ts', ...args];
  const { stdout, stderr } = await run(process.execPath, node).catch((error: { stdout: string; stderr: string }) => error);
  return stdout + stderr;
}

test.each(['single', 'sentinel', 'cluster'])(
  '%s: twenty seconds of faults show no violation',
  async (topology) => {
    const output = await torture('--seconds', '20', '--topology', topology);
    process.stdout.write(output);
    expect(output).toMatch(/^ {2}0 violations$/m);
  },
  120_000,
);

test('without faults no lease is lost and nobody is passed over', async () => {
  const output = await torture('--seconds', '5', '--topology', 'single', '--nemesis', 'none');
  process.stdout.write(output);
  expect(output).toMatch(/^ {2}0 violations$/m);
  expect(output).toMatch(/granted, of which 0 lost;/);
  expect(output).toMatch(/^ {2}control {3}0 of [1-9]\d* updates/m);
}, 60_000);

test.each(['incr-fences', 'deletes-anything', 'no-recheck'])(
  'the defect %s is caught',
  async (name) => {
    expect(Object.keys(MUTANTS)).toContain(name);
    const output = await torture('--seconds', '12', '--mutant', name);
    process.stdout.write(output);
    expect(output).toMatch(new RegExp(`^CAUGHT {2}${name}`, 'm'));
  },
  90_000,
);

test('an unknown name is refused, with those that exist', async () => {
  expect(await torture('--mutant', 'nobody')).toMatch(/There is no mutant 'nobody'\.[^]*incr-fences/);
  expect(await torture('--nemesis', 'rain')).toMatch(/There is no fault 'rain'\.[^]*blackhole/);
  expect(await torture('--topology', 'ring')).toMatch(/There is no topology 'ring'\.[^]*sentinel/);
});
