import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { DemoSettings } from './demo-settings.js';
import type { Member } from './member.js';
import type { TaskOrder, TaskRecord, TaskReply } from './task.js';

/** Names the variable with a worker's settings: unlike arguments, it is not shown to all users of the machine. */
export const WORKER_SETTINGS = 'DEMO_WORKER_SETTINGS';

/** A member in a child process. */
export async function joinByFork(settings: DemoSettings): Promise<Member> {
  const child = fork(new URL('./worker.js', import.meta.url), {
    env: { ...process.env, [WORKER_SETTINGS]: JSON.stringify(settings) },
  });
  const ended = once(child, 'exit').then(([code]: unknown[]) => {
    throw new Error(`Process ${settings.process} ended before its tasks did, with exit code ${String(code)}.`);
  });
  // Whoever waits for the child hears of it; afterwards its end is no news.
  ended.catch(() => undefined);
  await Promise.race([once(child, 'message'), ended]);
  return {
    name: settings.process,
    pid: child.pid as number,
    run: (order) => Promise.race([askFor(child, order), ended]),
    leave: async () => {
      child.disconnect();
      await ended.catch(() => undefined);
    },
  };
}

function askFor(child: ChildProcess, order: TaskOrder): Promise<TaskRecord> {
  return new Promise((resolve, reject) => {
    const listener = ({ task, record, error }: TaskReply): void => {
      if (task !== order.task) {
        return;
      }
      child.off('message', listener);
      if (record) {
        resolve(record);
      } else {
        reject(new Error(`Task ${task} failed: ${error}`));
      }
    };
    child.on('message', listener);
    child.send(order);
  });
}
