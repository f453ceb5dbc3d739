import type { EndedCall, FoundDeadlock, HeldLock, LockProcess, WaitingCall } from './survey.js';
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
  readonly deadlocks: readonly FoundDeadlock[];
}

const NUMBER = { maybe: 'number' } as const;

const HEALTH = {
  status: ['up', 'degraded', 'down'],
  reasons: { list: 'text' },
  reachable: 'boolean',
  unreachableMs: NUMBER,
  refusingMs: NUMBER,
  latencyMs: NUMBER,
  clockSkewMs: NUMBER,
  leastMarginMs: NUMBER,
  majority: NUMBER,
  members: { maybe: { list: { reachable: 'boolean', voting: { maybe: 'boolean' } } } },
} as const;

const CALL = { key: 'text', name: 'text', site: 'text' } as const;

const ROLL: Fields = { kind: ['roll'], id: 'text', from: 'text', to: 'text', recent: 'boolean', health: 'boolean' };

const ANSWER: Fields = {
  kind: ['answer'],
  id: 'text',
  process: {
    id: 'text',
    host: 'text',
    pid: 'number',
    version: 'text',
    upMs: 'number',
    held: 'number',
    waiting: 'number',
    health: { maybe: HEALTH },
  },
  part: 'number',
  parts: 'number',
  leftOut: 'number',
  held: { list: { ...CALL, fence: 'number', callFence: 'number', heldMs: 'number', remainingMs: NUMBER } },
  waiting: { list: { ...CALL, id: 'text', waitedMs: 'number', leftMs: 'number', holds: { list: { key: 'text', fence: 'number' } } } },
  ended: {
    list: {
      ...CALL,
      id: 'text',
      fence: NUMBER,
      waitedMs: 'number',
      heldMs: 'number',
      agoMs: 'number',
      outcome: ['released', 'lost', 'refused'],
      reason: { maybe: 'text' },
    },
  },
  deadlocks: {
    list: {
      id: 'text',
      agoMs: 'number',
      calls: { list: { process: 'text', site: 'text', holds: 'text', heldMs: 'number', waitsFor: 'text', waitedMs: 'number' } },
    },
  },
};

export function isRoll(message: unknown): message is Roll {
  return fits(message, ROLL);
}

export function isAnswer(message: unknown): message is RollAnswer {
  return fits(message, ANSWER);
}
