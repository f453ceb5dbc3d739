import { RedisLockStore } from '../../lib/redis/redis-lock-store';

const WORDS = { site: 'Later.run', name: 'later:<id>', orbit: { of: ['the', 'moon'] } };

const FENCE = 1_795_390_000_000_000;

/** The answer of a process of a made-up later version: unknown words in each place for one, and new fields. */
const LATER = {
  kind: 'answer',
  process: {
    id: 'later:7:00000000#1',
    host: 'later',
    pid: 7,
    version: '9.0.0',
    upMs: 5_000,
    held: 1,
    waiting: 1,
    moon: 'full',
    health: {
      status: 'frostbitten',
      reasons: ['thawing', 'membersAway', 'constructor'],
      reachable: true,
      refuses: 'moody',
      members: [{ reachable: true, voting: true, refuses: 'sleepy', mood: 3 }, { reachable: true }],
      majority: 1,
      tides: [1, 2],
    },
  },
  part: 0,
  parts: 1,
  leftOut: 0,
  held: [{ ...WORDS, key: 'later:held', fence: FENCE, callFence: FENCE, heldMs: 2_000, remainingMs: 60_000 }],
  waiting: [{ ...WORDS, key: 'later:held', id: 'w1', waitedMs: 1_000, leftMs: 50_000, holds: [], mood: 'calm' }],
  ended: [
    { ...WORDS, key: 'later:held', id: 'e1', waitedMs: 1, heldMs: 1, agoMs: 1_000, fence: 5, outcome: 'recycled', reason: 'sunspots' },
  ],
  incidents: [
    { ...WORDS, key: 'later:held', id: 'i1', type: 'evaporated', reason: 'sunspots', agoMs: 2_000, count: 2 },
    { ...WORDS, key: 'later:held', id: 'i2', type: 'lost', reason: 'eclipse', agoMs: 2_000, count: 1 },
    { ...WORDS, key: 'later:held', id: 'i3', type: 'cycle', scope: 'galaxy', agoMs: 2_000, count: 1, calls: [{ site: 'Later.run' }] },
  ],
  songs: [{ of: 'Earth' }],
};

/** The answer of a process that has dropped every field that names nothing. */
const BARE = {
  kind: 'answer',
  process: { id: 'bare:8:00000000#1', health: {} },
  held: [{ key: 'bare:held', fence: 6, callFence: 6 }],
  waiting: [{ key: 'bare:held', id: 'w2' }],
  ended: [{ key: 'bare:held', id: 'e2' }],
  incidents: [{ id: 'i4' }, { id: 'i5', type: 'cycle', calls: [{}] }, { id: 'i6', type: 'forced', forcedBy: {} }],
};

/** The other messages, as a later version may send them. */
const OTHERS = [
  { kind: 'song', of: 'Earth' },
  { kind: 'forced', from: 'later', key: 'nobody', fence: 1, mood: 'calm' },
  { kind: 'bye', process: 'nobody', until: 'spring' },
  { kind: 'probe', id: 'p', lap: 1, origin: 'o', key: 'nobody', fence: 1, path: [], cycle: [], depth: 3 },
  { kind: 'roll', id: 'r', from: 'later', to: 'later', moods: true },
];

export interface LaterProcess {
  /** Sends each message that is no answer, to all. */
  sendOthers(): Promise<void>;
  stop(): Promise<void>;
}

/** Processes of a made-up later version, at the locks of a server. */
export async function startLaterProcess(url: string): Promise<LaterProcess> {
  const store = new RedisLockStore(url);
  await store.open({ prefix: 'lock', warn: () => undefined });
  store.onMessage((text) => {
    const { kind, id, to, from } = JSON.parse(text) as Record<string, string>;
    if (kind === 'roll' && from !== 'later') {
      void Promise.all([LATER, BARE].map((answer) => store.send(JSON.stringify({ ...answer, id }), to))).catch(() => undefined);
    }
  });
  return {
    sendOthers: async () => void (await Promise.all(OTHERS.map((message) => store.send(JSON.stringify(message))))),
    stop: () => store.close(),
  };
}
