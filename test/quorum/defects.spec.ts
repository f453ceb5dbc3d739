import 'reflect-metadata';
import { stop } from 'esbuild';
import { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';
import type { LockStore } from '../../lib/core/lock-store';
import type { QuorumLockStore } from '../../lib/stores/quorum/quorum-lock-store';
import type { Answer, QuorumServer } from '../../lib/stores/quorum/quorum-server';
import type * as quorumScripts from '../../lib/stores/quorum/scripts';
import type { Standing, verdictOf } from '../../lib/stores/quorum/standing';
import type { RedisKeys } from '../../lib/stores/redis/redis-keys';
import { loadWith, type Edit } from '../support/defective';
import { acquired } from '../support/quorum-stores';
import { RedisQuorum } from '../support/redis-quorum';
import { until } from '../support/until';

const ENTRY = `
export { QuorumLockStore } from './stores/quorum/quorum-lock-store.js';
export { QuorumServer } from './stores/quorum/quorum-server.js';
export { verdictOf } from './stores/quorum/standing.js';
export { RedisKeys } from './stores/redis/redis-keys.js';
export * as scripts from './stores/quorum/scripts.js';
`;
const LOCK = 'lock:lock:{k}';
/** Far longer than any test. */
const TTL_MS = 40_000;
/** How long what has to happen may take, also where it never does. */
const SOON_MS = 4_000;

interface Library {
  readonly QuorumLockStore: typeof QuorumLockStore;
  readonly QuorumServer: typeof QuorumServer;
  readonly verdictOf: typeof verdictOf;
  readonly RedisKeys: typeof RedisKeys;
  readonly scripts: typeof quorumScripts;
}

let quorum: RedisQuorum;
let clients: Redis[];
let closing: { close(): unknown }[];
beforeEach(async () => {
  [clients, closing] = [[], []];
  quorum = await RedisQuorum.start(3);
});
afterEach(async () => {
  await Promise.all(closing.map((each) => each.close()));
  clients.forEach((client) => client.disconnect());
  await quorum.stop();
});
afterAll(() => stop());

function clientOf(url: string): Redis {
  const client = new Redis(url, { lazyConnect: true });
  clients.push(client);
  return client;
}

async function open(library: Library): Promise<LockStore> {
  const store = new library.QuorumLockStore(quorum.proxied.map(clientOf));
  closing.push(store);
  await store.open({ prefix: 'lock', warn: () => undefined });
  return store;
}

const fieldsAt = (place: number): Promise<string[]> => quorum.at(place).client.hkeys(LOCK);

/** What has to hold, and the defects that break it. */
interface Rule {
  readonly rule: string;
  /** What each is called, and the edits that it is. */
  readonly defects: Readonly<Record<string, readonly Edit[]>>;
  readonly check: (library: Library) => Promise<void>;
}

const RULES: readonly Rule[] = [
  {
    rule: 'a server that nobody has used is new only where all are',
    defects: {
      'the first use is judged by one new server': [
        {
          file: 'lib/stores/quorum/standing.ts',
          from: 'there.some((other) => other.counts || other.restarted)',
          to: 'standing.counts || standing.restarted',
        },
      ],
    },
    check: async ({ verdictOf: judge }) => {
      const isNew: Standing = { at: 0, knownMs: 9_000, counts: false, firstUseMs: undefined, restarted: false, fence: 0, said: [] };
      const roll = { runs: new Set<string>(), longestLeaseMs: 60_000, now: 0 };
      expect(judge(isNew, { ...roll, standings: [isNew, isNew, isNew] })).toEqual({ counts: 'first' });
      for (const known of [{ counts: true }, { restarted: true }]) {
        expect(judge(isNew, { ...roll, standings: [isNew, isNew, { ...isNew, ...known }] })).toEqual({ why: 'restarted', inMs: 51_000 });
      }
    },
  },
  {
    rule: 'a hold that only a minority has let in leaves it again',
    defects: {
      "a minority's hold is left behind": [
        { file: 'lib/stores/quorum/joining.ts', from: 'joined.forEach((server) => leave(server, stays));', to: '' },
      ],
    },
    check: async (library) => {
      const store = await open(library);
      const hold = await acquired(store as QuorumLockStore, 'k', TTL_MS);
      await until('all votes', async () => (await quorum.fences('k')).every((fence) => fence === String(hold.fence)));
      await Promise.all([1, 2].map((place) => quorum.at(place).client.del(LOCK)));
      quorum.proxy(1).latencyMs = 30;
      quorum.proxy(2).latencyMs = 30;
      const joined = { ...hold, id: randomUUID() };
      expect(await store.tickets?.join(joined)).toBe(false);
      await until('that it left', async () => !(await fieldsAt(0)).includes(`hold:${joined.id}`), SOON_MS);
    },
  },
  {
    rule: 'a release that a server missed before the others had answered is repeated',
    defects: {
      'it is not repeated': [{ file: 'lib/stores/quorum/quorum-lock-store.ts', from: 'missed.forEach((repeat) => repeat());', to: '' }],
    },
    check: async (library) => {
      const store = await open(library);
      const hold = await acquired(store as QuorumLockStore, 'k', TTL_MS);
      await until('all votes', async () => (await quorum.fences('k')).every((fence) => fence === String(hold.fence)));
      quorum.proxy(0).mode = 'refuse';
      [1, 2].forEach((place) => (quorum.proxy(place).latencyMs = 100));
      expect(await store.release(hold)).toBe(true);
      expect(await fieldsAt(0)).not.toEqual([]);
      quorum.proxy(0).mode = 'pass';
      await until('the release', async () => (await fieldsAt(0)).length === 0, SOON_MS);
    },
  },
  {
    rule: 'a fence is stored with the vote that it is for, and with no other',
    defects: {
      'any vote of the owner will do': [
        { file: 'lib/stores/quorum/scripts.ts', from: 'if held[1] ~= owner or not held[2] then', to: 'if held[1] ~= owner then' },
      ],
      'any owner will do': [
        { file: 'lib/stores/quorum/scripts.ts', from: 'if held[1] ~= owner or not held[2] then', to: 'if not held[2] then' },
      ],
    },
    check: async ({ scripts: { SETTLE } }) => {
      const { client } = quorum.at(0);
      await client.hset(LOCK, { owner: 'owner', fence: 7, 'hold:h.2': 'process' });
      const settle = (owner: string, vote: string): Promise<unknown> => {
        const names = { lock: LOCK, counter: 'lock:fence:{0}' };
        const { parameters } = SETTLE.command('k', { ...names, owner, vote: `hold:${vote}`, fence: 9 });
        return client.call('EVAL', SETTLE.source, ...parameters);
      };
      expect(await settle('owner', 'h.1')).toBe(0);
      expect(await settle('another', 'h.2')).toBe(0);
      expect([await client.hget(LOCK, 'fence'), await client.get('lock:fence:{0}')]).toEqual(['7', null]);
      expect(await settle('owner', 'h.2')).toBe(1);
      expect(await client.hget(LOCK, 'fence')).toBe('9');
    },
  },
  {
    // ioredis sends commands from the moment at which its status is ready, and tells of that a little later.
    rule: 'a vote that is sent on a new connection before that was looked at does not count',
    defects: {
      "an old session's votes count": [
        { file: 'lib/stores/quorum/quorum-server.ts', from: ' && session === this.#session });', to: ' });' },
      ],
    },
    check: async (library) => {
      const client = clientOf(quorum.proxied[0] as string);
      let connection: Redis | undefined;
      const source = Object.assign(client, {
        duplicate: (options: object) => {
          const made = new Redis(quorum.proxy(0).port, '127.0.0.1', options);
          connection ??= made;
          return made;
        },
      });
      const listener = { came: () => undefined, looked: () => undefined, said: () => [], verdict: () => undefined, warn: () => undefined };
      const keys = new library.RedisKeys('lock', false);
      const server = new library.QuorumServer(source, 'server 1 of 3', keys, 60_000, listener);
      closing.push({ close: () => server.close() });
      await server.open();
      expect(server.counts).toBe(true);
      await quorum.at(0).kill();
      const asked = new Promise<Answer>((resolve, reject) => {
        connection?.prependListener('ready', () =>
          server
            .ask(library.scripts.SETTLE.command('k', { lock: LOCK, counter: 'lock:fence:{0}', owner: 'o', vote: 'v', fence: 1 }))
            .then(resolve, reject),
        );
      });
      await quorum.at(0).start();
      expect((await asked).counts).toBe(false);
    },
  },
];

describe.each(RULES)('$rule', ({ defects, check }) => {
  test('holds', async () => {
    await check(await loadWith<Library>(ENTRY, []));
  });

  test.each(Object.entries(defects))('is found to be broken where %s', async (_, edits) => {
    const library = await loadWith<Library>(ENTRY, edits);
    await expect(check(library)).rejects.toThrow();
  });
});
