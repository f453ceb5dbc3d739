import { setTimeout as sleep } from 'node:timers/promises';
import { CommandTimeout, CommandTimeouts } from '../../lib/stores/redis/connection/command-timeouts';

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
