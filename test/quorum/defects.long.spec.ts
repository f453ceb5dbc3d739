import 'reflect-metadata';
import { stop } from 'esbuild';
import { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';
import type { LockStore } from '../../lib/core/seam/lock-store';
import type { Member } from '../../lib/quorum/members/member';
import type { QuorumCommands } from '../../lib/quorum/votes/quorum-commands';
import type { QuorumLockStore } from '../../lib/quorum/quorum-lock-store';
import type { Answer, QuorumServer } from '../../lib/quorum/members/quorum-server';
import type { Standing, verdictOf } from '../../lib/quorum/members/standing';
import type { RedisKeys } from '../../lib/redis/scripts/redis-keys';
import { loadWith, type Edit } from '../support/defective';
import { acquired } from '../support/quorum-stores';
import { RedisQuorum } from '../support/redis-quorum';
import { until } from '../support/until';

const ENTRY = `
export { QuorumLockStore } from './quorum/quorum-lock-store.js';
export { Member } from './quorum/members/member.js';
export { QuorumCommands } from './quorum/votes/quorum-commands.js';
export { QuorumServer } from './quorum/members/quorum-server.js';
export { verdictOf } from './quorum/members/standing.js';
export { RedisKeys } from './redis/scripts/redis-keys.js';
`;
const LOCK = 'lock:lock:{k}';
/** Far longer than any test. */
const TTL_MS = 40_000;
/** How long what has to happen may take, also where it never does. */
const SOON_MS = 4_000;

interface Library {
  readonly QuorumLockStore: typeof QuorumLockStore;
  readonly Member: typeof Member;
  readonly QuorumCommands: typeof QuorumCommands;
  readonly QuorumServer: typeof QuorumServer;
  readonly verdictOf: typeof verdictOf;
  readonly RedisKeys: typeof RedisKeys;
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

/** A rule that has to hold, and the defects that break it. */
interface Rule {
  readonly rule: string;
  /** The name of each defect, and its edits. */
  readonly defects: Readonly<Record<string, readonly Edit[]>>;
  readonly check: (library: Library) => Promise<void>;
}

const RULES: readonly Rule[] = [
  {
    rule: 'a server that was never used is new only where all are',
    defects: {
      'the first use is judged by one new server': [
        [
          'lib/quorum/members/standing.ts',
          'there.some((other) => other.counts || other.restarted)',
          'standing.counts || standing.restarted',
        ],
      ],
    },
    check: async ({ verdictOf: judge }) => {
      const isNew: Standing = { at: 0, knownMs: 9_000, counts: false, firstUseMs: undefined, restarted: false, fence: 0, reported: [] };
      const overview = { silentMs: [0, 0, 0], run: 'new', counting: new Set<string>(), longestLeaseMs: 60_000, holdMs: 122_000, now: 0 };
      expect(judge(isNew, { ...overview, standings: [isNew, isNew, isNew] })).toEqual({ counts: 'first' });
      for (const known of [{ counts: true }, { restarted: true }]) {
        expect(judge(isNew, { ...overview, standings: [isNew, isNew, { ...isNew, ...known }] })).toEqual({
          why: 'unknown',
          inMs: 51_000,
        });
      }
    },
  },
  {
    rule: 'a server that remembers that it counts does so unless another one does in its place',
    defects: {
      'others are not looked at': [['lib/quorum/members/standing.ts', 'there.every((other) => hasPlace(other, overview))', 'true']],
      'what others are about to count is not looked at': [['lib/quorum/members/standing.ts', '/^(vote|want):/', '/^vote:/']],
    },
    check: async ({ verdictOf: judge }) => {
      const knowing = (...reported: string[]): Standing => ({
        ...{ at: 0, knownMs: 9_000, counts: true, firstUseMs: undefined, restarted: false, fence: 0, reported },
      });
      const of = (...standings: Standing[]): unknown =>
        judge(standings[0] as Standing, {
          ...{ standings, silentMs: [0, 0, 0], run: 'c', counting: new Set<string>(), longestLeaseMs: 60_000, holdMs: 122_000, now: 0 },
        });
      const replaced = { why: 'replaced', inMs: 122_000 };
      expect(of(knowing(), knowing('vote:a', 'vote:b'), knowing())).toEqual({ counts: 'again' });
      expect(of(knowing(), knowing('vote:a', 'vote:b', 'vote:c', 'servers:3'), knowing())).toEqual({ counts: 'again' });
      expect(of(knowing(), knowing('vote:a', 'vote:b', 'vote:d'), knowing())).toEqual(replaced);
      expect(of(knowing(), knowing(), knowing('vote:a', 'vote:b', 'want:d'))).toEqual(replaced);
    },
  },
  {
    rule: 'a hold that only a minority has let in leaves it again',
    defects: {
      "a minority's hold is left behind": [['lib/quorum/joining.ts', 'isIn !== true && leave(', 'isIn === undefined && leave(']],
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
      'it is not repeated': [['lib/quorum/releasing.ts', 'released.then(', 'Promise.reject().then(']],
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
    // ioredis sends commands from the moment at which its status is ready, and emits the event a little later.
    rule: 'a vote that is sent on a new connection before that was checked does not count',
    defects: {
      "an old session's votes count": [['lib/quorum/members/quorum-server.ts', ' && session === this.#session };', ' };']],
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
      const commands = new library.QuorumCommands(new library.RedisKeys('lock', false), 'a process');
      const server: QuorumServer = new library.QuorumServer(
        { source },
        'server 1 of 3',
        (session) => member.check(session),
        () => true,
      );
      const member = new library.Member(server, commands, {
        longestLeaseMs: 60_000,
        readOnly: false,
        found: () => undefined,
        answered: () => undefined,
        checked: () => undefined,
        problem: () => '',
        report: () => [],
        verdict: () => undefined,
        warn: () => undefined,
      });
      closing.push(member);
      await member.open();
      await member.report({ counts: 'again', least: 0, endsAt: Infinity });
      expect(member.counts).toBe(true);
      await quorum.at(0).kill();
      const asked = new Promise<Answer>((resolve, reject) => {
        connection?.prependListener('ready', () =>
          server.ask(commands.settle({ key: 'k', owner: 'o', fences: 1 }, 'v', 1)).then(resolve, reject),
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
