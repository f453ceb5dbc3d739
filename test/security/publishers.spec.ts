import { randomUUID } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { KnownIncidents } from '../../console/page/known-incidents';
import type { LockService } from '../../lib/nest/lock.service';
import { Listeners } from '../../lib/kit/listeners';
import { MemoryLockStore } from '../../lib/memory/memory-lock-store';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';

/** As long as a message may be, in characters. */
const LONGEST = 262_000;
const MB = 2 ** 20;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapInUse(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

let store: MemoryLockStore;
let locks: LockService;

beforeEach(() => {
  store = new MemoryLockStore();
  locks = makeLocks(store);
});

const held = { key: 'made:up', name: 'n', site: 'p', fence: 7, callFence: 7, heldMs: 1 };
const someone = { host: 'h', pid: 1, version: '0', upMs: 1, held: 1, waiting: 0 };
const answer = { kind: 'answer', part: 0, parts: 1, leftOut: 0, held: [held], waiting: [], ended: [], incidents: [] };

/** A text that no shape names, and that takes the most memory for its length. */
const stuffed = (message: object): string => {
  const stuffing: unknown[] = [];
  const { length } = JSON.stringify({ ...message, stuffing });
  stuffing.push(...Array.from({ length: Math.floor((LONGEST - length) / 3) }, () => ({})));
  return JSON.stringify({ ...message, stuffing });
};

/** Answers each survey by `count` messages, made up by a stranger. */
function answersRolls(count: number, messageOf: (id: string, at: number) => string): void {
  store.onMessage((text) => {
    const { kind, id } = JSON.parse(text.length < 1_000 ? text : '{}') as { kind?: string; id: string };
    const answers = kind === 'roll' ? count : 0;
    for (let at = 0; at < answers; at++) {
      void store.send(messageOf(id, at));
    }
  });
}

test('a survey keeps 32 million characters of answers, nothing that it does not read, and says what it left out', async () => {
  answersRolls(200, (id, at) => stuffed({ ...answer, id, process: { ...someone, id: `p${at}` } }));
  const before = heapInUse();
  const survey = await locks.operations.survey({});
  expect(heapInUse() - before).toBeLessThan(20 * MB);
  expect(survey.processes.length).toBeLessThanOrEqual(1 + 32_000_000 / LONGEST);
  expect(survey.processes.length).toBeGreaterThan(100);
  expect(survey.held.length + survey.leftOut).toBe(200);
  expect(survey.held[0]).toEqual({ ...held, description: undefined, remainingMs: undefined, process: 'p0' });
}, 60_000);

test('no more than 2,000 processes are expected to answer, however many names came', async () => {
  let round = 0;
  answersRolls(1_500, (id, at) => JSON.stringify({ ...answer, id, process: { ...someone, id: `p${round}.${at}` } }));
  for (; round < 3; round++) {
    await locks.operations.survey({});
  }
  expect((await locks.operations.survey({})).silent.length).toBeLessThanOrEqual(2_000);
}, 60_000);

test('of who released a lock by force no more is kept than what is told', async () => {
  const before = heapInUse();
  for (let at = 0; at < 30; at++) {
    await store.send(stuffed({ kind: 'forced', from: 'f', key: 'k', fence: at, process: 'p' }));
  }
  expect(heapInUse() - before).toBeLessThan(10 * MB);
  expect((await locks.operations.survey({})).processes).toHaveLength(1);
});

test('the page keeps 5,000 incidents of a store, the last ones', () => {
  const known = new KnownIncidents();
  const tell = (from: number): unknown[] => {
    const incidents = Array.from({ length: 3_000 }, (_, at) => ({ id: `i${from + at}`, agoMs: 100_000 - from - at })) as never[];
    const survey = { store: 's', processes: [], held: [], waiting: [], ended: [], incidents, leftOut: 0, silent: [] };
    return known.completed([survey as never], 0, 0)[0]?.incidents as unknown[];
  };
  expect(tell(0)).toHaveLength(3_000);
  const told = tell(3_000);
  expect(told).toHaveLength(5_000);
  expect(told[0]).toMatchObject({ id: 'i1000' });
  expect(told.at(-1)).toMatchObject({ id: 'i5999' });
});

test('a message about a key, or an id, that is longer than any of this library is not read', () => {
  const heard: string[] = [];
  const listeners = new Listeners();
  listeners.onForced((key, fence) => heard.push(`forced ${fence} ${key.length}`));
  listeners.onTurn({ turn: (key, name) => heard.push(`turn ${name.length} ${key.length}`), recheck: () => undefined });
  listeners.onMessage((text, id) => heard.push(`note ${id.length} ${text.length}`));
  const long = 'x'.repeat(10_000);
  for (const message of [
    `forced 7 ${long}`,
    `turn 1 ${long}`,
    `turn ${long} k`,
    `note ${long} {}`,
    'forced 7 k',
    'turn 1 k',
    `note - ${long}`,
  ]) {
    listeners.receive(message);
  }
  expect(heard).toEqual(['forced 7 1', 'turn 1 1', 'note 1 10000']);
});

test('who may publish in Redis makes a process remember nothing that is long', async () => {
  const server = await RedisServer.start();
  const inRedis = new RedisLockStore(server.url);
  await inRedis.open({ prefix: 'lock', warn: () => undefined });
  const here = makeLocks(inRedis);
  try {
    const channel = `lock:wake:${inRedis.process}`;
    await until('that messages arrive', async () => (await server.client.publish(channel, 'nothing')) === 1);
    const before = heapInUse();
    for (let at = 0; at < 60; at++) {
      await server.client.publish(channel, `forced ${at} ${at}${'x'.repeat(MB)}`);
      await server.client.publish(channel, `note - ${stuffed({ kind: 'forced', from: 'f', key: 'k', fence: at, process: 'p' })}`);
    }
    // The last command has been read when it has been answered.
    let isAnswered = false;
    inRedis.onMessage((text) => (isAnswered ||= text.includes('"kind":"answer"')));
    const roll = { kind: 'roll', id: randomUUID(), from: 'f', to: inRedis.process, recent: false, health: false };
    await server.client.publish(channel, `note - ${JSON.stringify(roll)}`);
    await until('the answer', () => isAnswered);
    expect(heapInUse() - before).toBeLessThan(25 * MB);
    await here.withLock('k', () => undefined);
  } finally {
    await here.shutdown();
    await inRedis.close();
    await server.stop();
  }
}, 60_000);
