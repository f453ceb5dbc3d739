import type { LockProcess } from '../../../../lib/operate/peers/survey.js';
import type { EndedCall, FoundIncident, HeldLock, WaitingCall } from '../../../../lib/operate/peers/survey.js';
import type { StoreCondition } from './condition.js';
import type { FoundOrphan, PageInfo, SearchEnd, Timed } from '../../snapshot.js';

/** A lock that is held; times are those of this browser, in milliseconds. */
export type Held = Timed<HeldLock> & {
  /** Whether its process has not answered the last survey. */
  readonly isSilent?: boolean;
};

export type Waiting = Timed<WaitingCall>;

export type Ended = EndedCall & { readonly endedAt: number };

export type Incident = FoundIncident & { readonly at: number };

export type Orphan = FoundOrphan & { readonly until: number | undefined };

/** The results of a search of a store. */
export interface Search {
  readonly looked: number;
  readonly found: readonly Orphan[];
  readonly ended: SearchEnd | 'stopped' | undefined;
}

/** The state of one store. */
export interface StoreState extends StoreCondition {
  readonly name: string;
  /** When it was last asked. */
  readonly at: number;
  readonly failed: string | undefined;
  readonly processes: ReadonlyMap<string, LockProcess>;
  readonly silent: readonly string[];
  readonly held: readonly Held[];
  readonly waiting: readonly Waiting[];
  /** The last ones first. */
  readonly ended: readonly Ended[];
  /** The last ones first. */
  readonly incidents: readonly Incident[];
  readonly leftOut: number;
  readonly search: Search | undefined;
  /** Locks that calls wait for, and no process answers for. */
  readonly orphans: readonly Orphan[];
  /** The longest lease seen of each name, in milliseconds: what the bars are drawn against. */
  readonly leases: ReadonlyMap<string, number>;
}

/**
 * `live`: streamed; `polling`: asked again and again; `broken`: the server does not answer; `expired`: the session has
 * ended.
 */
export type ConnectionStatus = 'connecting' | 'live' | 'polling' | 'paused' | 'broken' | 'expired';

/** The state that the page shows. */
export interface State {
  readonly connection: ConnectionStatus;
  readonly info: PageInfo | undefined;
  readonly stores: readonly StoreState[];
  /** When the last survey came. */
  readonly at: number | undefined;
  /** The locks that were lost since the survey before. */
  readonly losses: readonly Incident[];
  /** Up to when this browser has shown incidents. */
  readonly seenAt: number;
}

export const NOTHING: State = { connection: 'connecting', info: undefined, stores: [], at: undefined, losses: [], seenAt: 0 };
