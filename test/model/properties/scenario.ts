/**
 * The fate of one command in the network: how long each way takes, and which part is lost. After a reset, its sender
 * knows at once.
 */
export interface Fate {
  readonly kind: 'passes' | 'request lost' | 'reply lost' | 'doubled' | 'reset' | 'sender stops';
  readonly outMs: number;
  readonly backMs: number;
  /**
   * How much later the second copy of a doubled command arrives, which was sent because the first was not answered; or
   * for how long the sender stops.
   */
  readonly lagMs: number;
}

/** The fate of one message. */
export type MessageFate = 'arrives' | 'is lost' | 'is late' | 'comes twice';

/** One locked call, and what its body does. */
export interface Call {
  readonly keys: readonly string[];
  readonly how: 'withLock' | 'acquire' | 'tryAcquire' | 'generator' | 'observable' | 'lead';
  readonly steps: readonly Step[];
  readonly ttl: number;
  readonly wait: number;
  readonly renew: boolean;
  readonly reentry: 'context' | 'never';
  readonly maxHold: number | undefined;
  readonly minHold: number;
  readonly abortAfterMs: number | undefined;
  /** Whose lock it enters by a ticket. */
  readonly joins: TicketOf | undefined;
  /** How long the listener of its signal works. */
  readonly listenerMs: number;
  /** For how long its handle is kept when its code has ended. */
  readonly lateMs?: number;
}

/** Its `minHold`, which may not be above its `maxHold`. */
export const minHoldOf = ({ minHold, maxHold = Infinity }: Call): number => Math.min(minHold, maxHold);

/**
 * The source of a ticket: a call that runs, a ticket that was made before, or a call that is asked for one when it has
 * ended.
 */
export type TicketOf = 'running' | 'made before' | 'ended';

/** A process that leads, or stands by, for so long. */
export interface Lead {
  readonly key: string;
  readonly ttl: number;
  readonly pause: number;
  readonly steps: readonly Step[];
  readonly forMs: number;
}

export type Step =
  | { readonly do: 'sleep'; readonly ms: number }
  | { readonly do: 'call'; readonly calls: readonly Call[]; readonly awaited: boolean }
  /** Gives a handle back, though code inside it goes on. */
  | { readonly do: 'release' }
  /** Makes a ticket, which somebody may use at any time. */
  | { readonly do: 'make a ticket' }
  | { readonly do: 'transaction'; readonly steps: readonly Step[]; readonly commitMs: number }
  /** Goes on for itself a little later: a listener, a timer, a worker. */
  | { readonly do: 'leave behind'; readonly afterMs: number; readonly steps: readonly Step[] }
  | { readonly do: 'outside locks'; readonly steps: readonly Step[] }
  /** Steps that run inside a call that came with the ticket. */
  | { readonly do: 'enter tickets'; readonly of: TicketOf; readonly key: string; readonly steps: readonly Step[] };

export type Action =
  | { readonly do: 'call'; readonly call: Call }
  /** Code that is in no call. */
  | { readonly do: 'steps'; readonly steps: readonly Step[] }
  | { readonly do: 'lead'; readonly lead: Lead }
  | { readonly do: 'shutdown' }
  | { readonly do: 'flush' | 'restart' }
  /** The server counts its subscriber connection for some time yet. */
  | { readonly do: 'crash'; readonly countedMs: number }
  | { readonly do: 'pause' | 'cut off'; readonly ms: number }
  | { readonly do: 'subscriber breaks'; readonly countedMs: number; readonly noticedMs: number }
  | { readonly do: 'sleep'; readonly ms: number; readonly refusedMs: number }
  | { readonly do: 'wall clock jumps'; readonly ms: number }
  | { readonly do: 'clock of the store jumps'; readonly ms: number }
  | { readonly do: 'force'; readonly key: string };

/** Happens to processes of every world. */
export type Accident = Extract<Action, { do: 'crash' | 'pause' | 'cut off' | 'subscriber breaks' | 'wall clock jumps' }>;

export interface ProcessScript {
  /** How fast its clock runs. */
  readonly rate: number;
  /** Of its commands, one after the other; what comes after them passes. */
  readonly fates: readonly Fate[];
  /** Of the messages to it; what comes after them arrives. */
  readonly messages: readonly MessageFate[];
  /** How long what it writes of each trouble takes. */
  readonly loggerMs: number;
}

export interface Scenario {
  readonly isHard: boolean;
  /** Whether the applications name the ends of transactions themselves, and also of those that have ended. */
  readonly namesEnds?: boolean;
  readonly seed: number;
  /** How long the client of the store waits for a reply, in milliseconds; one that waits for ever leaves it to core. */
  readonly commandTimeoutMs: number;
  /** The most that one way takes for a command that passes, in milliseconds. */
  readonly latencyMs: number;
  readonly processes: readonly ProcessScript[];
  readonly actions: readonly { readonly afterMs: number; readonly process: number; readonly action: Action }[];
}

/** Longer than all that a scenario can do. */
export const FOR_EVER_MS = 1_000_000;
export const MOST_PROCESSES = 3;
export const KEYS = ['a', 'b'] as const;
export const LONGEST_TTL_MS = 2_000;
