import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where `npm run test:stress` looks for the processes that a test has stopped: it does not let them go on. */
const folder = process.env['TEST_STOPPED'];

/** Stops a process where it stands, until `goOn()`. One that was not started stays so. */
export function stopProcess(pid: number | undefined): void {
  if (pid === undefined) {
    return;
  }
  if (folder !== undefined) {
    writeFileSync(join(folder, String(pid)), '');
  }
  signal(pid, 'SIGSTOP');
}

export function goOn(pid: number | undefined): void {
  if (pid === undefined) {
    return;
  }
  if (folder !== undefined) {
    rmSync(join(folder, String(pid)), { force: true });
  }
  signal(pid, 'SIGCONT');
}

/** One that has just ended by itself is stopped, too. */
function signal(pid: number, name: 'SIGSTOP' | 'SIGCONT'): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') {
      throw error;
    }
  }
}
