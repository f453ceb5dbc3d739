import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { codeLines, linesOf, readingOrder } from '../../scripts/size.mjs';
import { RedisServer } from '../support/redis-server';

const run = promisify(execFile);

interface Way {
  readonly files: readonly string[];
  readonly functions: number;
  readonly promises: number;
}

async function measure(...what: readonly string[]): Promise<Way> {
  const { stdout } = await run(process.execPath, ['--import', './test/support/typescript.mjs', 'test/house/way.mjs', ...what]);
  return JSON.parse(stdout) as Way;
}

const { order, beside } = readingOrder();

test('the reading order has at most 24 files of 4,700 lines of code, and a file is in it once', () => {
  expect(order.length).toBeGreaterThan(0);
  expect(order.length).toBeLessThanOrEqual(24);
  expect(beside.length).toBeLessThanOrEqual(12);
  expect(new Set([...order, ...beside]).size).toBe(order.length + beside.length);
  // A file that is not there throws.
  expect(order.reduce((lines, file) => lines + linesOf(file), 0)).toBeLessThanOrEqual(4_700);
});

test('lines of code are those without comments and blank lines', () => {
  expect(codeLines('/** a */\nconst one = 1; // one\n\n/*\n * two\n */\n// three\nexport { one };\n')).toBe(2);
});

test('the way of a warm uncontended call is as long as the map says, and no longer', async () => {
  const server = await RedisServer.start();
  try {
    const [redis, memory, reentry] = [await measure('redis', server.url), await measure('memory'), await measure('re-entry')];
    expect(redis.files).toEqual(
      expect.arrayContaining(['nest/methods/locked-method.ts', 'core/entering/entrance.ts', 'redis/scripts/script.ts']),
    );
    // The files that such a call enters are in the reading order, or named beside it.
    expect(redis.files.filter((file) => ![...order, ...beside].includes(file))).toEqual([]);
    expect(beside.filter((file) => !redis.files.includes(file))).toEqual([]);
    expect(reentry.files).toEqual(expect.arrayContaining(['nest/methods/locked-method.ts', 'core/calls/call-stack.ts']));
    expect(redis.promises).toBeGreaterThan(memory.promises);
    expect(memory.promises).toBeGreaterThan(reentry.promises);
    const map = await readFile('docs/architecture.md', 'utf8');
    for (const [name, { files, functions, promises }] of Object.entries({ Redis: redis, memory, 're-entry': reentry })) {
      const row = new RegExp(`^\\| ${name} +\\| (\\d+) +\\| (\\d+) +\\| (\\d+) +\\|$`, 'm').exec(map);
      const [mostFiles, mostFunctions, mostPromises] = (row ?? []).slice(1).map(Number);
      expect([name, files.length <= (mostFiles ?? 0), functions <= (mostFunctions ?? 0), promises <= (mostPromises ?? 0)]).toEqual([
        name,
        true,
        true,
        true,
      ]);
    }
  } finally {
    await server.stop();
  }
}, 240_000);
