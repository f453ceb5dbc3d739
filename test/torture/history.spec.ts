import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { HistoryFile, now, readHistories } from './history';

test('a process that stood still says so before what it writes next, as it may be killed then', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lock-history-'));
  try {
    const history = new HistoryFile(folder, 'w1.1');
    history.watchEventLoop();
    await sleep(50);
    const blockedAt = now();
    while (now() < blockedAt + 300) {
      // As a garbage collection does.
    }
    history.write({ op: 'lost', phase: 'info' });
    history.close();
    const [stall, lost] = readHistories(folder).slice(-2);
    expect(stall).toMatchObject({ op: 'stall', since: expect.any(Number) as number });
    expect(stall?.since).toBeLessThanOrEqual(blockedAt);
    expect(stall?.t).toBeGreaterThanOrEqual(blockedAt + 300);
    expect(lost).toMatchObject({ op: 'lost' });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
