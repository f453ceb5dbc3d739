import type { ChildProcess } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';
import { constants } from 'node:os';

/** Lets no server or worker outlive this process, however it ends: one that is stopped would never notice. */
export function takeChildrenAlong(): void {
  const children = new Set<ChildProcess>();
  subscribe('child_process', (message) => {
    const child = (message as { process: ChildProcess }).process;
    children.add(child);
    child.once('exit', () => children.delete(child));
  });
  process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => process.exit(128 + constants.signals[signal]));
  }
}
