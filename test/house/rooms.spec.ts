import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { RedisServer } from '../support/redis-server';

const run = promisify(execFile);

test('an uncontended locked call passes at most 22 rooms, as many as the map says', async () => {
  const server = await RedisServer.start();
  try {
    const { stdout } = await run(process.execPath, ['test/house/rooms.mjs', server.url]);
    const rooms = Number(/^(\d+) rooms/m.exec(stdout)?.[1]);
    const visited = new Set(stdout.split('\n').map((line) => line.split('\t')[0]));
    expect([...visited]).toEqual(expect.arrayContaining(['the acquire', 'the body', 'the release']));
    expect(rooms).toBeGreaterThan(10);
    expect(rooms).toBeLessThanOrEqual(22);
    expect(await readFile('docs/architecture.md', 'utf8')).toContain(`${rooms} rooms`);
  } finally {
    await server.stop();
  }
});
