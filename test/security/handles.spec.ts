import { inspect } from 'node:util';
import type { Lock } from 'nestjs-distributed-lock';
import { currentLock, MemoryLockStore } from 'nestjs-distributed-lock';
import { makeLocks } from '../support/make-locks';

/**
 * Every object that can be reached from a value by its own and inherited properties, hidden ones and symbols included.
 */
function reachable(value: unknown, seen = new Set<unknown>()): Set<unknown> {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value)) {
    return seen;
  }
  seen.add(value);
  for (let at: unknown = value; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const key of Reflect.ownKeys(at as object)) {
      const { value: held } = Object.getOwnPropertyDescriptor(at, key) as PropertyDescriptor;
      reachable(held, seen);
      seen.add(held);
    }
  }
  return seen;
}

/** The secrets in a ticket, as the text that other processes get. */
function secretsOf(ticket: string): string[] {
  const entries = JSON.parse(Buffer.from(ticket, 'base64url').toString()) as [string, string, number][];
  return [ticket, ...entries.map(([, secret]) => secret)];
}

test.each<[string, (see: (lock: Lock | undefined) => void) => Promise<unknown>]>([
  ['of a body', (see) => makeLocks(new MemoryLockStore()).withLock(['a', 'b'], async (lock) => see(lock))],
  ['of acquire()', async (see) => see(await makeLocks(new MemoryLockStore()).acquire('a'))],
  ['of currentLock()', (see) => makeLocks(new MemoryLockStore()).withLock('a', async () => see(currentLock()))],
  [
    'of currentLock() inside a handle',
    async (see) => (await makeLocks(new MemoryLockStore()).acquire('a')).run(async () => see(currentLock())),
  ],
])('nothing secret can be reached from a lock %s', async (_, take) => {
  let checked = 0;
  await take((lock) => {
    const ticket = (lock as Lock).makeTicket();
    const shown = [
      inspect(lock, { showHidden: true, depth: Infinity, getters: false }),
      inspect(lock, { showHidden: true, depth: Infinity, customInspect: false }),
      JSON.stringify(lock),
      ...[...reachable(lock)].filter((value) => typeof value === 'string'),
    ].join('\n');
    for (const secret of secretsOf(ticket)) {
      expect(shown).not.toContain(secret);
      checked++;
    }
    expect(Reflect.ownKeys(lock as Lock)).toEqual([]);
    expect([...reachable(lock)].filter((value) => typeof value === 'object').length).toBeLessThan(3);
  });
  expect(checked).toBeGreaterThan(1);
});

test('what is reachable is found', () => {
  const frame = { [Symbol('holds')]: [Object.defineProperty({}, 'owner', { value: 'secret', enumerable: false })] };
  expect(reachable({ frame }).has('secret')).toBe(true);
});
