import { setTimeout as sleep } from 'node:timers/promises';
import { CommandTimeout, CommandTimeouts, OpenCommand } from '../../lib/stores/redis/connection/command-timeouts';

test('the silence of a connection ends with it, and does not cost the one after it', async () => {
  let silences = 0;
  const timeouts = new CommandTimeouts(() => silences++);
  let breakConnection!: (error: Error) => void;
  const unanswered = new Promise((_, reject) => {
    breakConnection = reject;
  });
  await expect(timeouts.bound(unanswered, 100)).rejects.toThrow(CommandTimeout);
  breakConnection(new Error('Connection is closed.'));
  await sleep(1_500);
  await timeouts.bound(sleep(300), 5_000);
  expect(silences).toBe(0);
});

test('a reply that comes after the limit is not read', async () => {
  const timeouts = new CommandTimeouts(() => undefined);
  const read: unknown[] = [];
  const failed = new Promise((_, reject) => {
    const command = new OpenCommand(timeouts, 100, (reply) => read.push(reply), reject);
    setTimeout(() => command.answered('late'), 600);
  });
  await expect(failed).rejects.toThrow(CommandTimeout);
  await sleep(900);
  expect(read).toEqual([]);
  expect(timeouts.busy).toBe(false);
});
