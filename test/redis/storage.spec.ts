import 'reflect-metadata';
import { execFile, fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { startHolder, type Holder } from '../support/holder';
import { newHold } from '../support/new-hold';
import { RedisServer } from '../support/redis-server';
import { stopProcess } from '../support/stopping';
import { until } from '../support/until';

const KEY = 'balance:42';
const TTL_MS = 20_000;
const PATTERNS: Readonly<Record<string, string>> = {
  key: 'balance:42',
  hold: '[\\w-]{16}[0-9a-z]+-[\\w-]{6}',
  process: '[\\w.-]+:\\d+:[0-9a-f]{8}',
  name: '[^:]+',
  host: '[\\w.-]+',
  pid: '\\d+',
  number: '\\d+',
};

const [documented] = /^## What is stored$.*?(?=^## )/ms.exec(readFileSync('docs/stores/redis.md', 'utf8')) as unknown as [string];
const [NAMES, FIELDS] = documented.split(/\n\n(?=\| of)/).map((part) => rowsOf(part)) as [string[][], string[][]];

/** The cells of each row of the tables, without the head and the back-ticks of the first two columns. */
function rowsOf(text: string): string[][] {
  const rows = [...text.matchAll(/^\| (.*) \|$/gm)].map(([, row]) => (row as string).split('|').map((cell) => cell.trim()));
  return rows.slice(2);
}

/** The pattern of a documented name or value when it is filled in. */
function pattern(text: string): RegExp {
  const bare = text.replaceAll('`', '').replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^${bare.replaceAll(/<(\w+)>/g, (_, word: string) => PATTERNS[word] as string)}$`);
}

function longestOf(lives: string): number {
  const [, count, unit] = /(\d+) (ms|s)/.exec(lives) ?? [];
  return count === undefined ? TTL_MS : Number(count) * (unit === 's' ? 1_000 : 1);
}

let server: RedisServer;
let holders: Holder[] = [];
let waiters: ChildProcess[] = [];

beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(async () => {
  for (const child of [...waiters, ...holders.map((holder) => holder.child)]) {
    child.kill('SIGKILL');
  }
  await server.stop();
});

async function cli(...args: string[]): Promise<string[]> {
  const { stdout } = await promisify(execFile)('redis-cli', ['-p', String(server.port), ...args]);
  return stdout.split('\n').slice(0, -1);
}

async function hash(name: string): Promise<Record<string, string>> {
  const cells = await cli('HGETALL', name);
  return Object.fromEntries(cells.flatMap((cell, at) => (at % 2 === 0 ? [[cell, cells[at + 1]]] : [])) as [string, string][]);
}

/** For how long the test prolongs a turn: a slow machine has to have the time to ask. */
const PROLONGED_MS = 10_000;

/**
 * The documented rows that describe the stored keys: every name has a row, with its type and no longer to live, but for
 * a turn.
 */
async function rowsStored(): Promise<Set<string>> {
  const seen = new Set<string>();
  for (const name of await cli('KEYS', `*{${KEY}}`).then(async (names) => [...names, ...(await cli('KEYS', '*:fence:*'))])) {
    const [type = ''] = await cli('TYPE', name);
    const isTurn = type === 'hash' && (await hash(name))['turn'] !== undefined;
    const rows = NAMES.filter(([as, of]) => pattern(as as string).test(name) && of === type);
    const [, , lives = '', what = ''] = rows.find((row) => rows.length === 1 || row[3]?.includes('reserved') === isTurn) ?? [];
    expect([name, what]).toEqual([name, expect.stringMatching(/./)]);
    const left = Number((await cli('PTTL', name))[0]);
    expect([name, lives, left > 0 && left <= (isTurn ? PROLONGED_MS : longestOf(lives))]).toEqual([name, lives, lives !== 'for ever']);
    seen.add(what);
  }
  return seen;
}

/** Fields as the document has them, each with the pattern of its value where it is one. */
function documentedFields(of: string): Record<string, string> {
  return Object.fromEntries(FIELDS.filter(([kind]) => kind === of).map(([, field = '', value = '']) => [field.replaceAll('`', ''), value]));
}

function expectFields(stored: Record<string, string>, of: string, missing = /^$/): void {
  const fields = documentedFields(of);
  const shapes = Object.keys(fields).map((field) => [pattern(field), /^`([^`]+)`/.exec(fields[field] as string)?.[1], field] as const);
  for (const [field, value] of Object.entries(stored)) {
    const [, shape] = shapes.find(([name]) => name.test(field)) ?? [undefined, 'no such field'];
    expect([field, value]).toEqual([field, shape === undefined ? value : expect.stringMatching(pattern(shape).source.replace(/\$$/, ''))]);
  }
  for (const [name] of shapes.filter(([, , field]) => !missing.test(field))) {
    expect(Object.keys(stored)).toContainEqual(expect.stringMatching(name));
  }
}

async function startWaiter(): Promise<ChildProcess> {
  const before = (await cli('ZRANGE', `lock:queue:{${KEY}}`, '0', '-1')).filter(Boolean).length;
  const child = fork('test/fixtures/waiter.mjs', [server.url, KEY, '180000'], { execArgv: [] });
  waiters.push(child);
  await once(child, 'message');
  // One that is not notified yet has half a number.
  await until('its place', async () => {
    const scores = (await cli('ZRANGE', `lock:queue:{${KEY}}`, '0', '-1', 'WITHSCORES')).filter((_, at) => at % 2 === 1);
    return scores.length > before && scores.every((score) => Number(score) % 1 === 0);
  });
  return child;
}

/** The rest of a turn, which is prolonged then. -1 where there is none. */
const PROLONG = `
  if redis.call('HEXISTS', KEYS[1], 'turn') == 0 then
    return -1
  end
  local left = redis.call('PTTL', KEYS[1])
  redis.call('PEXPIRE', KEYS[1], ${PROLONGED_MS})
  return left
`;

/** Prolongs a turn, and the marks of the holds that were released, which last for ten seconds. */
async function prolong(lock: string): Promise<void> {
  await server.client.eval(PROLONG, 1, lock);
  for (const mark of await server.client.keys('lock:done:*')) {
    await server.client.pexpire(mark, 10_000);
  }
}

test('docs/stores/redis.md names all that redis-cli shows, and nothing else', async () => {
  holders = [await startHolder(server.url, KEY, TTL_MS)];
  holders.push(await startHolder(server.url, KEY, TTL_MS, holders[0]?.ticket));
  waiters = [];
  const [first, second] = [await startWaiter(), await startWaiter()];
  const pids = [...holders.map(({ child }) => child.pid), first.pid, second.pid];
  const [lock, queue] = [`lock:lock:{${KEY}}`, `lock:queue:{${KEY}}`];
  const seen = await rowsStored();

  const held = await hash(lock);
  expectFields(held, 'a held lock');
  // A renewal of the second says that it is in the lock.
  expect(held['by']).toMatch(new RegExp(`\\(pid (${pids[0]}|${pids[1]})\\)`));
  expect([held['fence'], held['ttl']]).toEqual([String(holders[0]?.fence), String(TTL_MS)]);
  // One counter for all keys: the start-up checks of the others came later.
  expect(Number((await cli('GET', 'lock:fence:{0}'))[0])).toBeGreaterThan(Number(held['fence']));
  const holding = Object.entries(held).filter(([field]) => field.startsWith('hold:'));
  expect(holding.map(([, process]) => Number(process.split(':')[1])).toSorted()).toEqual(pids.slice(0, 2).toSorted());

  const cells = await cli('ZRANGE', queue, '0', '-1', 'WITHSCORES');
  const [[, , member = '']] = FIELDS.filter(([of]) => of === 'a member of a queue') as [string[]];
  const shape = pattern(/^`([^`]+)`/.exec(member)?.[1] as string);
  expect(cells).toEqual([expect.stringMatching(shape), '1', expect.stringMatching(shape), '2']);
  expect([cells[0], cells[2]].map((place) => Number(place?.split(':')[1]))).toEqual(pids.slice(2));

  const [channel] = NAMES.find(([, type]) => type === 'channel') as [string];
  const channels = await cli('PUBSUB', 'CHANNELS');
  expect(channels).toContain('lock:wake:all');
  const processes = channels.filter((name) => name !== 'lock:wake:all');
  expect(processes.map((name) => pattern(channel).test(name))).toEqual([true, true, true, true]);
  expect(processes.map((name) => Number(name.split(':')[3])).toSorted()).toEqual(pids.toSorted());

  // Every command of the document shows something.
  const commands = [...documented.matchAll(/^redis-cli (.*)$/gm)].map(([, args]) => args as string);
  expect(commands.length).toBeGreaterThan(4);
  for (const command of commands) {
    const args = [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? (bare as string));
    const shown = await cli(...args);
    expect([command, shown.join('')]).toEqual([command, expect.not.stringMatching(/^(ERR|WRONGTYPE|\s*$)/)]);
  }

  // No process claims the turn, and no other asks.
  stopProcess(first.pid as number);
  stopProcess(second.pid as number);
  const left = Promise.all(holders.map((holder) => holder.leave()));
  let leftMs = -1;
  await until('the turn', async () => (leftMs = Number(await server.client.eval(PROLONG, 1, lock))) >= 0);
  expect(leftMs).toBeGreaterThan(0);
  expect(leftMs).toBeLessThanOrEqual(1_000);
  const prolonging = setInterval(() => void prolong(lock).catch(() => undefined), 100);
  await left;
  const reserved = await hash(lock);
  expectFields(reserved, 'a reserved lock');
  expect(Number(reserved['turn']?.split(':')[1])).toBe(first.pid);
  // Every command of the holders was answered, so they have left no mark.
  expect(await cli('KEYS', `lock:done:*:{${KEY}}`)).toEqual(['']);
  const store = new RedisLockStore(server.url);
  await store.release(newHold(KEY, { id: 'aProcess-of_test0-anOwne', unanswered: true }));
  await store.close();
  for (const what of await rowsStored()) {
    seen.add(what);
  }
  clearInterval(prolonging);
  const marks = await cli('KEYS', `lock:done:*:{${KEY}}`);
  expect(marks).toHaveLength(1);
  expect(await cli('GET', marks[0] as string)).toEqual(['0']);
  const rows = NAMES.filter(([, type]) => type !== 'channel').map(([, , , what]) => what as string);
  expect(seen).toEqual(new Set(rows));
  // Each look is a process of its own.
}, 180_000);

test('it names the fields of a key that is shared, and no others', async () => {
  const store = new RedisLockStore(server.url);
  const permit = (): HoldRecord => newHold('erp', { id: `aProcess-of_test${(permits += 1)}-anOwne`, shares: 2 });
  let permits = 0;
  const first = permit();
  const { fence = 0 } = await store.acquire(first);
  await store.acquire(permit());
  expectFields(await hash('lock:lock:{erp}'), 'a shared lock', /^claim/);
  await store.acquire(permit(), { name: 'placeP2' });
  await store.release({ ...first, fence });
  expectFields(await hash('lock:lock:{erp}'), 'a shared lock');
  await store.close();
});
