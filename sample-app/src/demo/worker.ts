import 'reflect-metadata';
import type { DemoSettings } from './demo-settings.js';
import { WORKER_SETTINGS } from './forked-member.js';
import { joinHere } from './local-member.js';
import type { TaskOrder, TaskReply } from './task.js';

// A child process of the demo: runs the tasks that its parent sends, and ends with it.
const member = await joinHere(JSON.parse(process.env[WORKER_SETTINGS] ?? '') as DemoSettings);

process.on('message', (order: TaskOrder) => {
  const { task } = order;
  member.run(order).then(
    (record) => send({ task, record }),
    (error: unknown) => send({ task, error: String(error) }),
  );
});
process.once('disconnect', () => {
  void member.leave().finally(() => process.exit());
});
process.send?.('ready');

function send(reply: TaskReply): void {
  // A parent that was stopped meanwhile hears no more.
  if (process.connected) {
    process.send?.(reply);
  }
}
