import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Freezer } from './freezer.mjs';
import { until } from '../support/until';

/** Starts another one in a session of its own, as suites and servers do, and prints its process id. */
const PARENT = `
const child = require('node:child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true, stdio: 'ignore' });
console.log(child.pid);
setInterval(() => {}, 1000);
`;

/** Whether a process stands still. The name of its program, in parentheses, may contain anything. */
const isStopped = (pid: number): boolean => /^\d+ \(.*\) T/s.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));

// Elsewhere nobody says who descends from whom.
(existsSync('/proc/self/stat') ? test : test.skip)(
  'a family stands still now and then, but for whom a test has stopped, and goes on at the end',
  async () => {
    const root = spawn(process.execPath, ['-e', PARENT], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = (await once(root.stdout, 'data')) as [Buffer];
    const [parent, child] = [root.pid as number, Number(line)];
    const stoppedByTests = mkdtempSync(join(tmpdir(), 'stopped-'));
    const freezer = new Freezer({ root: parent, stoppedByTests, seed: 1 });
    try {
      for (const pid of [parent, child]) {
        await until(`that ${pid} stands still`, () => isStopped(pid));
        await until(`that ${pid} goes on`, () => !isStopped(pid));
      }
      writeFileSync(join(stoppedByTests, String(child)), '');
      process.kill(child, 'SIGSTOP');
      for (let stops = 0; stops < 3; stops++) {
        await until('that the parent stands still', () => isStopped(parent));
        await until('that the parent goes on', () => !isStopped(parent));
        expect(isStopped(child)).toBe(true);
      }
      await until('that the parent stands still at the end', () => isStopped(parent));
      freezer.stop();
      expect([isStopped(parent), isStopped(child)]).toEqual([false, true]);
      expect(freezer.count).toBeGreaterThanOrEqual(6);
    } finally {
      freezer.stop();
      process.kill(child, 'SIGKILL');
      root.kill('SIGKILL');
    }
  },
  60_000,
);
