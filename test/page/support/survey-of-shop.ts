import type { CycleCall } from '../../../lib/core/words/cycle-call';
import type { EndedCall, FoundIncident, HeldLock, LockProcess, Survey, WaitingCall } from '../../../lib/operate/peers/survey';

const PROCESSES = ['api-7f9c4-x2kqp', 'api-7f9c4-m8wdl', 'worker-5b6d8-tt4rn', 'worker-5b6d8-jq9vz'] as const;
const WORK = [
  { name: 'balance:<id>', places: ['TransferService.run', 'RefundService.refund'], leaseMs: 10_000, holdMs: 420 },
  { name: 'invoice:<number>', places: ['InvoiceService.issue'], leaseMs: 10_000, holdMs: 900 },
  { name: 'import:<tenant>', places: ['CatalogImport.run'], leaseMs: 60_000, holdMs: 21_000 },
  { name: 'report:daily', places: ['ReportJob.build'], leaseMs: 30_000, holdMs: 9_000 },
] as const;

/** A fence is the time of its grant, in microseconds. */
const GRANTED_AT = 1_795_390_000_000_000;

/** The locks of a shop that is busy: what processes would say, `sinceMs` after a beginning. The same each time. */
export function surveyOfShop(sinceMs = 0): Survey {
  return {
    store: 'default',
    processes: PROCESSES.slice(0, 3).map(processRow),
    held: HELD.map((lock) => ({ ...lock, heldMs: lock.heldMs + sinceMs, remainingMs: (lock.remainingMs ?? 0) - (sinceMs % 2_500) })),
    waiting: WAITING.map((call) => ({ ...call, waitedMs: call.waitedMs + sinceMs, leftMs: Math.max(0, call.leftMs - sinceMs) })),
    ended: ENDED.map((call) => ({ ...call, agoMs: call.agoMs + sinceMs })),
    incidents: INCIDENTS.map((each) => ({ ...each, agoMs: each.agoMs + sinceMs })),
    leftOut: 0,
    silent: [idOf(3)],
  };
}

const INCIDENTS: readonly FoundIncident[] = [
  incident('busy', 'refused', 1_380_000, {
    key: 'balance:90210',
    reason: 'busy',
    count: 212,
    lastedMs: 5_000,
    holder: 'api-7f9c4-m8wdl (pid 17)',
  }),
  incident('away', 'storeUnavailable', 912_000, {
    key: '',
    name: 'LockOperations.health',
    site: 'LockOperations.health',
    reason: 'LOCK_STORE',
  }),
  incident('back', 'storeAnswered', 903_500, { key: '', name: 'LockOperations.health', site: 'LockOperations.health', lastedMs: 8_500 }),
  incident('forced', 'forced', 611_000, { key: 'import:acme-nordics', fence: GRANTED_AT - 700_000_000 }),
  incident('deadlock', 'cycle', 48_000, {
    scope: 'fleet',
    calls: [
      cycleCall(0, 'TransferService.run', 'balance:42', 'balance:7', 1_420),
      cycleCall(1, 'RefundService.refund', 'balance:7', 'balance:42', 1_180),
    ],
  }),
  incident('loss', 'lost', 31_000, { process: idOf(3), fence: GRANTED_AT - 35_800_000, reason: 'expired', lastedMs: 4_800 }),
];

function incident(id: string, type: FoundIncident['type'], agoMs: number, facts: Partial<FoundIncident>): FoundIncident {
  return { key: 'balance:42', name: 'balance:<id>', site: 'RefundService.refund', process: idOf(1), id, type, agoMs, count: 1, ...facts };
}

function cycleCall(process: number, site: string, holds: string, waitsFor: string, heldMs: number): CycleCall {
  return { process: `${PROCESSES[process]} (pid ${pidOf(process)})`, site, holds, heldMs, waitsFor, waitedMs: heldMs - 300 };
}

function pidOf(process: number): number {
  return process < 2 ? 17 : 23;
}

function idOf(process: number): string {
  return `${PROCESSES[process]}:${pidOf(process)}#a${process}f3`;
}

function processRow(host: string, at: number): LockProcess {
  const isDegraded = at === 2;
  return {
    id: idOf(at),
    host,
    pid: pidOf(at),
    version: '0.1.0',
    upMs: 7_640_000 + at * 911_000,
    held: HELD.filter(({ process }) => process === idOf(at)).length,
    waiting: WAITING.filter(({ process }) => process === idOf(at)).length,
    health: {
      status: isDegraded ? 'degraded' : 'up',
      reasons: isDegraded ? ['polls'] : [],
      reachable: true,
      latencyMs: 0.6 + at * 0.9,
      hearsTurns: !isDegraded,
      clockSkewMs: 4 - at * 3,
      heldHere: 3,
      waitingHere: 1,
      leastMarginMs: 6_400 + at * 310,
      evicts: false,
    },
  };
}

function held(key: string, work: number, place: number, process: number, heldMs: number, remainingMs: number): HeldLock {
  const { name, places } = WORK[work] as (typeof WORK)[number];
  const fence = GRANTED_AT - heldMs * 1_000;
  return { key, name, site: places[place] as string, process: idOf(process), fence, callFence: fence, heldMs, remainingMs };
}

const HELD: readonly HeldLock[] = [
  held('import:acme-nordics', 2, 0, 2, 74_200, 51_300),
  held('report:daily', 3, 0, 2, 12_800, 24_900),
  held('invoice:2026-11874', 1, 0, 0, 1_140, 8_860),
  held('balance:42', 0, 0, 0, 3_320, 7_100),
  held('balance:7', 0, 1, 1, 810, 9_400),
  held('balance:1377', 0, 0, 1, 260, 9_740),
  held('invoice:2026-11871', 1, 0, 1, 7_900, 2_120),
  held('balance:90210', 0, 0, 0, 95, 9_900),
];

function waiting(key: string, work: number, place: number, process: number, waitedMs: number, holds: readonly string[] = []): WaitingCall {
  const { name, places } = WORK[work] as (typeof WORK)[number];
  return {
    key,
    name,
    site: places[place] as string,
    process: idOf(process),
    id: `w${key}${process}${waitedMs}`,
    waitedMs,
    leftMs: 15_000 - waitedMs,
    holds: holds.map((own) => ({ key: own, fence: HELD.find((lock) => lock.key === own)?.fence ?? 1 })),
  };
}

const WAITING: readonly WaitingCall[] = [
  waiting('balance:42', 0, 1, 1, 2_900),
  waiting('balance:42', 0, 0, 1, 2_450, ['balance:7']),
  waiting('balance:42', 0, 0, 0, 1_300),
  waiting('balance:42', 0, 0, 2, 640),
  waiting('balance:7', 0, 1, 0, 720),
  waiting('import:acme-nordics', 2, 0, 0, 11_700),
  waiting('invoice:2026-11871', 1, 0, 2, 4_100),
];

const ENDED: readonly EndedCall[] = [...endedCalls(), ...lostCall()];

/** A minute and a half of work, without two holds of a key at the same time. */
function endedCalls(): EndedCall[] {
  const calls: EndedCall[] = [];
  let random = 42;
  const next = (below: number): number => {
    random = (random * 1_103_515_245 + 12_345) % 2_147_483_648;
    return random % below;
  };
  for (const [work, { name, places, holdMs }] of WORK.entries()) {
    for (const key of ['balance:42', 'balance:7', 'invoice:2026-11874', 'import:acme-nordics', 'report:daily'].filter((each) =>
      each.startsWith(name.split(':')[0] as string),
    )) {
      for (let agoMs = 3_700 + next(600); agoMs < 100_000;) {
        const heldMs = Math.round(holdMs * (0.6 + next(100) / 60));
        const isRefused = next(14) === 0;
        const isBeside = key === 'balance:42' && agoMs < 36_000 && agoMs + heldMs > 30_100;
        const fence = isRefused ? undefined : GRANTED_AT - (agoMs + heldMs) * 1_000;
        const call: EndedCall = {
          key,
          name,
          site: places[next(places.length)] as string,
          process: idOf(work > 1 ? 2 : next(3)),
          id: `${key}${agoMs}`,
          fence,
          waitedMs: isRefused ? 5_000 : next(3) === 0 ? 0 : next(2_400),
          heldMs: isRefused ? 0 : heldMs,
          agoMs,
          outcome: isRefused ? 'refused' : 'released',
          reason: isRefused ? 'busy' : undefined,
        };
        calls.push(...(isBeside && !isRefused ? [] : [call]));
        agoMs += heldMs + 60 + next(holdMs);
      }
    }
  }
  return calls;
}

/** The lease of a process that stood still ran out; it heard of it 900 ms after the next holder had the lock. */
function lostCall(): EndedCall[] {
  const process = idOf(3);
  const common = { key: 'balance:42', name: 'balance:<id>', site: 'TransferService.run', waitedMs: 180 } as const;
  const at = 31_000;
  return [
    {
      ...common,
      process: idOf(1),
      id: 'next',
      fence: GRANTED_AT - (at + 900) * 1_000,
      heldMs: 1_700,
      agoMs: at - 800,
      outcome: 'released',
      reason: undefined,
    },
    {
      ...common,
      process,
      id: 'lost',
      fence: GRANTED_AT - (at + 4_800) * 1_000,
      heldMs: 4_800,
      agoMs: at,
      outcome: 'lost',
      reason: 'expired',
    },
  ];
}
