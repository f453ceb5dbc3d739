import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface Outcome {
  readonly code: number;
  readonly output: string;
  /** The part of it that goes to standard error. */
  readonly errors: string;
  /** The notes of the suites: a folder. */
  readonly notes: string;
}

/** Runs jest on some of the fixtures, as `npm test` runs it on the suites. */
function runFixtures(names: string[], limitMs?: number, env?: Readonly<Record<string, string>>, maxWorkers = 2): Promise<Outcome> {
  const notes = mkdtempSync(join(tmpdir(), 'notes-'));
  const config = {
    rootDir: process.cwd(),
    extensionsToTreatAsEsm: ['.ts'],
    transform: { '^.+\\.ts$': '@swc/jest' },
    testMatch: names.map((name) => `<rootDir>/test/runner/fixtures/${name}.fixture.ts`),
    testTimeout: 2_000,
    maxWorkers,
    runner: ['<rootDir>/test/runner/suite-runner.mjs', { ...(limitMs && { limitMs }) }],
    testEnvironment: '<rootDir>/test/runner/suite-environment.mjs',
    testEnvironmentOptions: { globalsCleanup: 'off' },
    reporters: ['default', ['<rootDir>/test/runner/summary-reporter.mjs', { folder: notes }]],
  };
  const args = ['--experimental-vm-modules', 'node_modules/jest/bin/jest.js', '--config', JSON.stringify(config)];
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      args,
      { env: { ...process.env, TEST_ONCE: undefined, NOTES: notes, FORCE_COLOR: '0', ...env } },
      (error, stdout, stderr) => {
        resolve({ code: error ? Number(error.code) : 0, output: stdout + stderr, errors: stderr, notes });
      },
    );
  });
}

/** How often a test of a fixture ran. */
const runsOf = ({ notes }: Outcome, name: string) =>
  readFileSync(join(notes, 'runs'), 'utf8').split('\n').filter((line) => line === name).length; // prettier-ignore

describe('a suite', () => {
  test('cannot fail the next one with a late callback', async () => {
    const { code, output } = await runFixtures(['late-callback', 'passes']);
    expect(output).toMatch(/^2 passed, 0 failed$/m);
    expect(output).not.toContain('a late callback');
    expect(code).toBe(0);
  });

  test('does not keep the run with what it leaves open, and its children and theirs end with it', async () => {
    const { code, output, notes } = await runFixtures(['open-handles']);
    expect(output).toMatch(/^1 passed, 0 failed$/m);
    expect(code).toBe(0);
    const pids = readFileSync(join(notes, 'pids'), 'utf8').trim().split(' ').map(Number); // prettier-ignore
    expect(pids).toHaveLength(2);
    for (const pid of pids) {
      expect(isRunning(pid)).toBe(false);
    }
  });

  // Elsewhere it cannot be seen whether a process is left.
  (existsSync('/proc/self/stat') ? test : test.skip)(
    'runs in the process of the last one, where that has left nothing behind',
    async () => {
      const pidsOf = async (...names: string[]): Promise<string[]> => {
        const { output, notes } = await runFixtures(names, undefined, undefined, 1);
        expect(output).toMatch(/^2 passed, 0 failed$/m);
        return readFileSync(join(notes, 'suites'), 'utf8').trim().split('\n'); // prettier-ignore
      };
      const tidy = await pidsOf('tidy', 'tidy-too');
      expect(tidy[1]).toBe(tidy[0]);
      const untidy = await pidsOf('untidy', 'untidy-too');
      expect(untidy[1]).not.toBe(untidy[0]);
    },
  );

  test('that hangs is named with the test that it hangs in, and fails the run, which ends', async () => {
    const { code, output } = await runFixtures(['hangs', 'passes'], 8_000);
    expect(output).toContain(
      'test/runner/fixtures/hangs.fixture.ts did not end within 8 s. It hangs in a suite whose event loop never turns again.',
    );
    expect(output).toMatch(/^1 passed, 1 failed$/m);
    expect(code).toBe(1);
  });

  test('whose process ends before it fails the run', async () => {
    const { code, output } = await runFixtures(['crashes', 'passes']);
    expect(output).toContain('The process of test/runner/fixtures/crashes.fixture.ts ended before its suite: SIGKILL.');
    expect(output).toMatch(/^1 passed, 1 failed$/m);
    expect(code).toBe(1);
  });

  test('in which something is thrown when its tests have passed fails the run, and standard error has what it said', async () => {
    const { code, output, errors } = await runFixtures(['passes-and-rejects', 'passes']);
    expect(output).toContain(
      'Outside of the tests of test/runner/fixtures/passes-and-rejects.fixture.ts was thrown: Error: a late rejection',
    );
    expect(errors).toContain('what the suite says');
    expect(output).toMatch(/^1 passed, 1 failed$/m);
    expect(code).toBe(1);
  });

  test('in which something is thrown when one of its tests has failed shows that failure', async () => {
    const { code, output, errors } = await runFixtures(['fails-and-rejects', 'passes']);
    expect(output).toContain('● fails, and leaves a promise that is rejected when the suite has ended');
    expect(errors).toContain('Error: a late rejection');
    expect(output).toMatch(/^1 passed, 1 failed$/m);
    expect(code).toBe(1);
  });
});

describe('a test that fails', () => {
  test('while it was stopped runs again, twice at most, and counts as it ends', async () => {
    const stopped = await runFixtures(['stopped', 'passes']);
    expect([runsOf(stopped, 'once'), runsOf(stopped, 'always'), runsOf(stopped, 'passes')]).toEqual([2, 3, 1]);
    expect(stopped.output).toMatch(/^ran again: stopped for [3-9]\d\d ms in one second: a test of time is stopped \(once\)$/m);
    expect(stopped.output).toMatch(/^ {2}a test of time is stopped \(once\): passed in run 2$/m);
    expect(stopped.output).toMatch(/^ {2}a test of time is stopped whenever it runs: failed in run 3$/m);
    expect(stopped.output).toContain('● a test of time › is stopped whenever it runs');
    expect(stopped.output).toMatch(/^Tests with a defect, which failed while their processes were stopped, and ran again: 2$/m);
    expect(stopped.output).toMatch(/^3 passed, 1 failed$/m);
    expect(stopped.code).toBe(1);
  });

  test('while it was stopped fails at once in a stress run', async () => {
    const stopped = await runFixtures(['stopped', 'passes'], undefined, { TEST_ONCE: '1' });
    expect([runsOf(stopped, 'once'), runsOf(stopped, 'always'), runsOf(stopped, 'passes')]).toEqual([1, 1, 1]);
    expect(stopped.output).toMatch(/^2 passed, 2 failed$/m);
    expect(stopped.code).toBe(1);
  });

  test('and was not stopped for longer than it allows fails at once', async () => {
    const wrong = await runFixtures(['fails']);
    expect(runsOf(wrong, 'fails')).toBe(1);
    // .ci/run prints these lines last.
    const file = readdirSync(wrong.notes).find((name) => name.startsWith('failed-')) ?? '';
    const failed = readFileSync(join(wrong.notes, file), 'utf8');
    expect(failed).toMatch(/^test\/runner\/fixtures\/fails\.fixture\.ts: fails\n {4}Error: expect/);
    expect(failed).toContain('Expected: "right"');
    expect(wrong.output).toMatch(/^0 passed, 1 failed$/m);
    expect(wrong.code).toBe(1);
  });

  // Elsewhere the kernel does not say how long a process waited.
  (existsSync('/proc/self/schedstat') ? test : test.skip)('while a child waited for a processor runs again', async () => {
    const starved = await runFixtures(['starved']);
    expect(runsOf(starved, 'starved')).toBe(3);
    expect(starved.output).toMatch(/^0 passed, 1 failed$/m);
  });
});

/** One that has ended stays as a zombie until its parent takes notice. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
