import type { EndedCall, FoundIncident, HeldLock, LockProcess, WaitingCall } from './survey.js';
import type { ForcedNotice } from './incident-log.js';
import { fits, type Fields } from './shape.js';

/** Asks all processes what they hold, and what waits there. */
export interface Roll {
  readonly kind: 'roll';
  /** A UUID; the answers have it. */
  readonly id: string;
  /** Who asks: `LockProcess.id`. */
  readonly from: string;
  /** The process to answer, as the store calls it. */
  readonly to: string;
  /** Whether recorded calls are asked for. */
  readonly recent: boolean;
  /** Whether the health is asked for. */
  readonly health: boolean;
  /** How far back incidents are asked for, in milliseconds; undefined for none. */
  readonly incidentsMs?: number | undefined;
}

/** Tells all processes who released a lock by force. */
export interface ForcedMessage extends ForcedNotice {
  readonly kind: 'forced';
  /** Who did: `LockProcess.id`. */
  readonly from: string;
}

/** Tells those who expect an answer that the process gives none any more. */
export interface ByeMessage {
  readonly kind: 'bye';
  /** Who leaves: `LockProcess.id`. */
  readonly process: string;
}

/** A row of an answer; the process is that of the answer. */
type Row<T> = Omit<T, 'process'>;

/** One of the parts of a process's answer. */
export interface RollAnswer {
  readonly kind: 'answer';
  readonly id: string;
  readonly process: LockProcess;
  /** Which of its parts this is, from 0: a message may come twice. */
  readonly part: number;
  readonly parts: number;
  readonly leftOut: number;
  readonly held: readonly Row<HeldLock>[];
  readonly waiting: readonly Row<WaitingCall>[];
  readonly ended: readonly Row<EndedCall>[];
  /** Undefined from older versions. */
  readonly incidents?: readonly Row<FoundIncident>[] | undefined;
}

const COUNT = { maybe: 'count' } as const;
const MS = { maybe: 'ms' } as const;
const OFFSET = { maybe: 'offset' } as const;
const TEXT = { maybe: 'text' } as const;

const HEALTH = {
  status: ['up', 'degraded', 'down'],
  reasons: { list: 'text' },
  reachable: 'boolean',
  unreachableMs: MS,
  refusingMs: MS,
  failure: TEXT,
  latencyMs: MS,
  clockSkewMs: OFFSET,
  leastMarginMs: OFFSET,
  majority: COUNT,
  members: { maybe: { list: { reachable: 'boolean', voting: { maybe: 'boolean' }, refuses: { maybe: ['readOnly', 'full'] } } } },
} as const;

const CALL = { key: 'text', name: 'text', site: 'text', description: TEXT } as const;

const FORCED_BY = { by: TEXT, reason: TEXT, process: 'text' } as const;

export const FORCED: Fields = { kind: ['forced'], from: 'text', key: 'text', fence: 'count', ...FORCED_BY };

const BYE: Fields = { kind: ['bye'], process: 'text' };

const ROLL: Fields = { kind: ['roll'], id: 'text', from: 'text', to: 'text', recent: 'boolean', health: 'boolean', incidentsMs: MS };

export const ANSWER: Fields = {
  kind: ['answer'],
  id: 'text',
  process: {
    id: 'text',
    host: 'text',
    pid: 'count',
    version: 'text',
    upMs: 'ms',
    held: 'count',
    waiting: 'count',
    health: { maybe: HEALTH },
  },
  part: 'count',
  parts: 'count',
  leftOut: 'count',
  held: { list: { ...CALL, fence: 'count', callFence: 'count', heldMs: 'ms', remainingMs: MS } },
  waiting: { list: { ...CALL, id: 'text', waitedMs: 'ms', leftMs: 'ms', holds: { list: { key: 'text', fence: 'count' } } } },
  ended: {
    list: {
      ...CALL,
      id: 'text',
      fence: COUNT,
      waitedMs: 'ms',
      heldMs: 'ms',
      agoMs: 'ms',
      outcome: ['released', 'lost', 'refused'],
      reason: TEXT,
      servedMs: MS,
      ranOnMs: MS,
      instead: TEXT,
    },
  },
  incidents: {
    maybe: {
      list: {
        ...CALL,
        id: 'text',
        type: ['lost', 'forced', 'cycle', 'refused', 'releaseFailed', 'storeUnavailable', 'storeAnswered'],
        agoMs: 'ms',
        count: 'count',
        fence: COUNT,
        reason: TEXT,
        lastedMs: MS,
        error: TEXT,
        holder: TEXT,
        forcedBy: { maybe: FORCED_BY },
        scope: { maybe: ['process', 'fleet'] },
        calls: {
          maybe: {
            list: { process: 'text', site: 'text', holds: 'text', heldMs: 'ms', waitsFor: 'text', waitedMs: 'ms' },
          },
        },
      },
    },
  },
};

export function isRoll(message: unknown): message is Roll {
  return fits(message, ROLL);
}

export function isForced(message: unknown): message is ForcedMessage {
  return fits(message, FORCED);
}

export function isBye(message: unknown): message is ByeMessage {
  return fits(message, BYE);
}

export function isAnswer(message: unknown): message is RollAnswer {
  return fits(message, ANSWER);
}
