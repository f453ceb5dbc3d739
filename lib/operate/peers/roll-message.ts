import type { EndedCall, FoundIncident, HeldLock, LockProcess, WaitingCall } from './survey.js';
import type { ForcedNotice } from './incident-log.js';
import type { HealthReason } from '../../core/words/lock-health.js';
import type { Fields, Shape } from './shape.js';

/** Asks all processes which locks they hold, and which calls wait there. */
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

/** A row of an answer; its process is the process of the answer. */
type Row<T> = Omit<T, 'process'>;

/** One part of a process's answer. */
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
  readonly incidents: readonly Row<FoundIncident>[];
}

const COUNT = { maybe: 'count' } as const;
const MS = { maybe: 'ms' } as const;
const OFFSET = { maybe: 'offset' } as const;
const TEXT = { maybe: 'text' } as const;
const SHARES = { maybe: 'textOrCount' } as const;

/** Defaults for fields that another version does not send. The name of a process, lock, call or incident has none. */
const ZERO = { maybe: 'count', or: 0 } as const;
const NO_TIME = { maybe: 'ms', or: 0 } as const;
const EMPTY = { maybe: 'text', or: '' } as const;
const NOT_SAID = { maybe: 'text', or: 'not said' } as const;
const NO = { maybe: 'boolean', or: false } as const;
const YES = { maybe: 'boolean', or: true } as const;

/** For how long each reason has been there. A reason of a later version has no age here. */
const REASON_MS: Readonly<Record<HealthReason, Shape>> = {
  unreachable: MS,
  noMajority: MS,
  failing: MS,
  readOnly: MS,
  full: MS,
  membersAway: MS,
  polls: MS,
  tooFewReplicas: MS,
  clockSkew: MS,
  closing: MS,
};

const HEALTH = {
  status: NOT_SAID,
  reasons: listOf('text'),
  reachable: YES,
  unreachableMs: MS,
  refusingMs: MS,
  failure: TEXT,
  latencyMs: MS,
  clockSkewMs: OFFSET,
  leastMarginMs: OFFSET,
  reasonMs: { maybe: REASON_MS },
  majority: COUNT,
  members: { maybe: { list: { reachable: YES, voting: { maybe: 'boolean' }, refuses: TEXT } } },
} as const;

const CALL = { key: 'text', name: EMPTY, site: EMPTY, description: TEXT } as const;

const FORCED_BY = { by: TEXT, reason: TEXT, process: EMPTY } as const;

export const FORCED: Fields = { kind: ['forced'], from: 'text', key: 'text', fence: 'count', ...FORCED_BY };

export const BYE: Fields = { kind: ['bye'], process: 'text' };

export const ROLL: Fields = { kind: ['roll'], id: 'text', from: 'text', to: 'text', recent: NO, health: NO, incidentsMs: MS };

export const ANSWER: Fields = {
  kind: ['answer'],
  id: 'text',
  process: {
    id: 'text',
    host: NOT_SAID,
    pid: ZERO,
    version: NOT_SAID,
    upMs: NO_TIME,
    held: ZERO,
    waiting: ZERO,
    health: { maybe: HEALTH },
  },
  part: ZERO,
  parts: { maybe: 'count', or: 1 },
  leftOut: ZERO,
  held: listOf({ ...CALL, fence: 'count', callFence: 'count', heldMs: NO_TIME, remainingMs: MS, shares: SHARES }),
  waiting: listOf({
    ...CALL,
    id: 'text',
    waitedMs: NO_TIME,
    leftMs: NO_TIME,
    shares: SHARES,
    holds: listOf({ key: 'text', fence: 'count' }),
  }),
  ended: listOf({
    ...CALL,
    id: 'text',
    fence: COUNT,
    waitedMs: NO_TIME,
    heldMs: NO_TIME,
    agoMs: NO_TIME,
    outcome: NOT_SAID,
    reason: TEXT,
    servedMs: MS,
    ranOnMs: MS,
    instead: TEXT,
  }),
  incidents: listOf({
    ...CALL,
    id: 'text',
    key: EMPTY,
    type: NOT_SAID,
    agoMs: NO_TIME,
    count: { maybe: 'count', or: 1 },
    fence: COUNT,
    reason: TEXT,
    lastedMs: MS,
    error: TEXT,
    holder: TEXT,
    forcedBy: { maybe: FORCED_BY },
    scope: TEXT,
    calls: {
      maybe: { list: { process: EMPTY, site: EMPTY, holds: EMPTY, heldMs: NO_TIME, waitsFor: EMPTY, waitedMs: NO_TIME } },
    },
  }),
};

function listOf<Item extends Shape>(list: Item): { readonly maybe: { readonly list: Item }; readonly or: readonly [] } {
  return { maybe: { list }, or: [] };
}
