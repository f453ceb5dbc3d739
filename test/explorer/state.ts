import type { Shares } from '../../lib/core/seam/lock-store.js';
import type { QueuedPlace } from '../../lib/kit/key-state.js';
import type { Claim, SharedHold } from '../../lib/kit/shared-holds.js';
import { JOINED_TTL_MS, TTL_MS, type Scope, type Want } from './scope.js';

/**
 * The knowledge of a process about one lock of a call. Times are in ms since the start, by the clock that all processes
 * share.
 */
export interface Lease {
  readonly key: string;
  /** `line`: behind another call of its process; `asking`: a command is on its way; `paused`: it asks again later. */
  stage: 'wanted' | 'line' | 'asking' | 'paused' | 'held' | 'releasing' | 'ended';
  owner: string;
  hold: string;
  /** How the hold shares the key; undefined for one that writes. */
  readonly shares: Shares | undefined;
  /** The fence of the lock to join by a ticket; 0 for a lock that is acquired. */
  joins: number;
  isUnknown: boolean;
  /** Whether an attempt at this hold was never answered. */
  unanswered: boolean;
  fences: number;
  fence: number;
  /** The fence of its lock in the store. */
  stored: number;
  /** When what the deadline counts from was sent. */
  sentAt: number;
  /** When the attempt was sent, or when to ask again. */
  at: number;
  /** When the renewal that is on its way was sent, or the next is due. */
  renewal: { readonly isSent: boolean; readonly at: number };
  /** How many events that may break exclusion the server had seen when it granted or renewed this. */
  epoch: number;
}

export interface Call {
  stage: 'new' | 'entering' | 'running' | 'over';
  readonly leases: Lease[];
  gaveUp: boolean;
}

/** The calls of a process that want a key. */
export interface Line {
  place: string;
  isNotified: boolean;
  burst: number;
  /** The call that contends, holds or releases; -1 where there is none. */
  current: number;
  /** How many names of holds and places it has used. */
  names: number;
}

/** A release that is repeated until it is answered. */
export interface Release {
  readonly key: string;
  readonly hold: string;
  readonly owner: string;
  readonly shares: Shares | undefined;
  /** Whether it leaves a done mark. */
  unanswered: boolean;
  readonly firstSentAt: number;
  sentAt: number;
  readonly until: number;
  /** Until when the lease was trusted that its code had left; 0 where it was given up. */
  readonly trustedUntil: number;
  readonly epoch: number;
}

export interface Process {
  /** Whether its client sends a command again by itself after its connection was lost. */
  readonly sendsAgain: boolean;
  /** How it wants the key; undefined for one that writes. */
  readonly shares: Shares | undefined;
  state: 'up' | 'stopped' | 'crashed' | 'cut';
  readonly calls: Call[];
  readonly lines: Line[];
  readonly releases: Release[];
}

export type CommandKind = 'acquire' | 'join' | 'renew' | 'release' | 'exchange' | 'leave';

/** A thing on its way: a command, its reply, or a message to a process. */
export interface Transit {
  readonly phase: 'command' | 'reply' | 'message';
  readonly process: number;
  readonly kind: CommandKind | 'turn' | 'forced';
  readonly key: string;
  readonly hold: string;
  readonly owner: string;
  readonly shares?: Shares | undefined;
  readonly place: string;
  readonly fence: number;
  readonly fences: number;
  readonly ttlMs: number;
  /** Of a release or an exchange: whether a done mark is to be left. */
  readonly unanswered: boolean;
  readonly sentAt: number;
  /** By the server's clock. */
  readonly latest: number;
  /** Of an exchange: the caller after it. */
  readonly next?: { readonly hold: string; readonly owner: string; readonly mayOvertake: boolean };
  readonly answer?: Answer;
  isLate: boolean;
  /** A copy, whose reply nobody waits for. */
  isCopy: boolean;
}

export interface Answer {
  readonly held: boolean;
  readonly released: boolean;
  readonly fence: number;
  readonly remainingMs: number;
  readonly rank: number;
  readonly epoch: number;
  /** Whether the key is of the other kind. */
  readonly refused?: boolean;
  /** Whether nothing was decided on the room: the hold is over, the command late, or the key of the other kind. */
  readonly isUndecided?: boolean;
}

/** The holds that share a key, and the places that have room reserved. */
export interface StoredShared {
  readonly fence: number;
  readonly holds: readonly (readonly [hold: string, SharedHold])[];
  readonly claims: readonly (readonly [place: string, Claim])[];
  /** The fields that a planted defect adds. */
  readonly more: readonly (readonly [name: string, value: unknown])[];
}

/** The lock table's record of a key. */
export interface StoredKey {
  readonly key: string;
  readonly queue: readonly QueuedPlace[];
  readonly queueEndsAt: number;
  readonly holds: readonly (readonly [hold: string, process: string])[];
  readonly grant?: {
    readonly owner: string;
    readonly fence: number;
    readonly since: number;
    readonly ttlMs: number;
    readonly endsAt: number;
  };
  readonly turn?: { readonly place: QueuedPlace; readonly endsAt: number };
  readonly shared?: StoredShared;
}

export interface Stored {
  readonly keys: readonly StoredKey[];
  readonly done: readonly (readonly [hold: string, answer: boolean, until: number])[];
  readonly fence: number;
}

export interface State {
  now: number;
  /** How far the server's clock is ahead. */
  aheadMs: number;
  stored: Stored;
  readonly processes: Process[];
  readonly transits: Transit[];
  faultsLeft: number;
  epoch: number;
  /** Whether the server's clock was set back, so that a lease may last longer. */
  wasSetBack: boolean;
  /** Whether the server lost its counter, which only the clock makes up for. */
  wasFlushed: boolean;
  /** The highest fence granted or reserved. */
  maxFence: number;
  /** Holds whose release was carried out. */
  readonly released: string[];
}

export const keysOf = ({ keys }: Scope): string[] => ['a', 'b'].slice(0, keys);

export function initialState(scope: Scope): State {
  const processes = Array.from({ length: scope.processes }, (_, at): Process => ({
    sendsAgain: at === 1,
    shares: sharesOf(scope.wants?.[at]),
    state: 'up',
    calls: Array.from({ length: scope.calls }, (): Call => ({ stage: 'new', leases: [], gaveUp: false })),
    lines: keysOf(scope).map(() => ({ place: '', isNotified: false, burst: 0, current: -1, names: 0 })),
    releases: [],
  }));
  return {
    now: 0,
    aheadMs: 0,
    stored: { keys: [], done: [], fence: 0 },
    processes,
    transits: [],
    faultsLeft: scope.faults,
    epoch: 0,
    wasSetBack: false,
    wasFlushed: false,
    maxFence: 0,
    released: [],
  };
}

/** A copy of a state. The records of the table, and of things on their way, are replaced and never changed. */
export function copyOf(state: State): State {
  return {
    ...state,
    processes: state.processes.map(({ sendsAgain, shares, state: up, calls, lines, releases }) => ({
      sendsAgain,
      shares,
      state: up,
      calls: calls.map((call) => ({ ...call, leases: call.leases.map((lease) => ({ ...lease })) })),
      lines: lines.map((line) => ({ ...line })),
      releases: releases.map((release) => ({ ...release })),
    })),
    transits: state.transits.map((transit) => ({ ...transit })),
    released: [...state.released],
  };
}

const sharesOf = (want: Want = 'write'): Shares | undefined => (want === 'write' ? undefined : want);

/** The lease that a call asks for, by whether it joins a lock. */
export const ttlOf = ({ joins }: { readonly joins: number }): number => (joins > 0 ? JOINED_TTL_MS : TTL_MS);

/** Until when a process trusts a lease that was asked for at `sentAt`: the rule of `leaseDeadline`. */
export const trustedUntil = (lease: Pick<Lease, 'sentAt' | 'joins'>): number => lease.sentAt + ttlOf(lease) * 0.99 - 2;

export function isTrusted(lease: Lease, now: number): boolean {
  return lease.stage === 'held' && now < trustedUntil(lease);
}

export const nameOf = (process: number): string => `p${process}`;
export const numberOf = (name: string): number => Number(name[1]);

export const isGone = ({ state }: Process): boolean => state === 'crashed' || state === 'cut';
