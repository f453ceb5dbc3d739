/** The facts that a server knows of its part in the quorum, as it replies to a report. */
export interface Standing {
  /** When the reply came, by the monotonic clock. */
  readonly at: number;
  /** For how long its run has been known, in milliseconds. */
  readonly knownMs: number;
  /** Whether the votes of this run count. */
  readonly counts: boolean;
  /** How long ago the first use of the quorum was found, in milliseconds; undefined where the server does not know. */
  readonly firstUseMs: number | undefined;
  /** Whether an earlier run is known, which may have had votes that are forgotten. */
  readonly restarted: boolean;
  /** The last fence of the server. */
  readonly fence: number;
  /**
   * The reports of processes that are not old: `vote:<run>` of servers that count, `want:<run>` of servers that are
   * about to, `servers:<number>`, `lease:<ms>`.
   */
  readonly reported: readonly string[];
}

/**
 * For how long servers must have been known before they are taken for new, in milliseconds: a process that knew an
 * earlier run reports it meanwhile. `some`: a minority is away, and a process may have reported to those servers only.
 */
const NEW_AFTER_MS = { all: 2_000, some: 5_000 } as const;

/** The facts that a process knows of all servers of its quorum. */
export interface Overview {
  /** The standing of each server; undefined where the server has not answered for long. */
  readonly standings: readonly (Standing | undefined)[];
  /** For how long each has not answered, in milliseconds; 0 for one that answers. */
  readonly silentMs: readonly number[];
  /** The run that is judged, and those whose votes count for this process. */
  readonly run: string;
  readonly counting: ReadonlySet<string>;
  readonly longestLeaseMs: number;
  /** For how long reports hold, in milliseconds. */
  readonly holdMs: number;
  readonly now: number;
}

/**
 * Whether the votes of a server count: from now on, and why; or in how many milliseconds at the earliest, and why not
 * yet.
 *
 * - `first`: the quorum is used for the first time, and nothing can have been forgotten.
 * - `new`: the quorum is perhaps used for the first time; a process that knows an earlier run may still report it. For
 *   ever, as long as too few servers answer.
 * - `restarted`: an earlier run is known, or another server at its address. The server may have forgotten votes, and
 *   leases that these votes granted may not be over.
 * - `unknown`: as `restarted`, but no earlier run is known: nobody has seen the server before, or it was emptied.
 * - `contested`: as many other servers have votes as there are places. They are the earlier runs of servers that
 *   restarted, or the servers of processes with another list.
 * - `replaced`: processes with another list have another server in its place, and both servers would make a majority
 *   with the rest.
 * - `unheard`: it is not known whether the server was replaced, as long as a server is away, or has forgotten its
 *   reports, that may have been told of the replacement.
 */
export type Verdict =
  | { readonly counts: 'again' | 'first' }
  | {
      readonly counts?: undefined;
      readonly why: 'new' | 'restarted' | 'unknown' | 'contested' | 'replaced' | 'unheard';
      readonly inMs: number;
    };

/** Reads the reply to REPORT. */
export function readStanding(reply: unknown): Standing & { readonly serverMs: number } {
  const [knownMs, counts, firstUseMs, restarted, fence, serverMs, ...reported] = reply as readonly unknown[];
  return {
    at: performance.now(),
    knownMs: Number(knownMs),
    counts: Number(counts) === 1,
    firstUseMs: Number(firstUseMs) < 0 ? undefined : Number(firstUseMs),
    restarted: Number(restarted) === 1,
    fence: Number(fence),
    reported: reported.map(String),
    serverMs: Number(serverMs),
  };
}

/** Judges a server that has answered, and whose votes do not count so far for this process. */
export function verdictOf(standing: Standing, overview: Overview): Verdict {
  const { standings, silentMs, longestLeaseMs, holdMs, now } = overview;
  const there = standings.filter((other) => other !== undefined);
  const waitMs = longestOf(there, longestLeaseMs);
  const knownMs = agedMs(standing, standing.knownMs, now);
  if (!there.every((other) => hasPlace(other, overview))) {
    // The earlier run of a server that restarted was reported last before its new run was known.
    return standing.counts || knownMs >= holdMs
      ? { why: 'replaced', inMs: holdMs }
      : { why: standing.restarted ? 'restarted' : 'contested', inMs: holdMs - knownMs };
  }
  if (standing.counts) {
    // The server has forgotten nothing, and no other server counts in its place since this process was cut off from it,
    // stood still or was started.
    return { counts: 'again' };
  }
  if (forgottenForMs(standing, there, waitMs, now) <= 0) {
    // Another process may count a replacement, and may have said so only to a server that is away, or that has
    // forgotten it.
    const unknownForMs = (other: Standing | undefined, silent: number): number =>
      silent > 0 || !other ? waitMs - silent : forgottenForMs(other, there, waitMs, now);
    const inMs = Math.max(...standings.map((other, at) => unknownForMs(other, silentMs[at] as number)));
    return inMs > 0 ? { why: 'unheard', inMs } : { counts: 'again' };
  }
  if (there.some((other) => other.counts || other.restarted)) {
    return { why: standing.restarted ? 'restarted' : 'unknown', inMs: waitMs - knownMs };
  }
  const away = standings.length - there.length;
  const newAfterMs = Math.min(away === 0 ? NEW_AFTER_MS.all : NEW_AFTER_MS.some, waitMs);
  const inMs = Math.max(...there.map((other) => newAfterMs - agedMs(other, other.knownMs, now)));
  if (away > (standings.length - 1) / 2) {
    return { why: 'new', inMs: Infinity };
  }
  return inMs > 0 ? { why: 'new', inMs } : { counts: 'first' };
}

/** In how many milliseconds at most the leases are over whose votes a server may have forgotten. */
function forgottenForMs(standing: Standing, there: readonly Standing[], waitMs: number, now: number): number {
  const knownMs = agedMs(standing, standing.knownMs, now);
  const least = Math.min(NEW_AFTER_MS.all, waitMs) / 2;
  // The run has been the same since before the first use.
  const wasThere = there.some((other) => other.firstUseMs !== undefined && agedMs(other, other.firstUseMs, now) + least <= knownMs);
  return standing.counts || (wasThere && !standing.restarted) ? 0 : waitMs - knownMs;
}

/** The longest lease that any process of the quorum may ask for, as far as is known. */
export function longestOf(standings: readonly (Standing | undefined)[], own: number): number {
  return Math.max(own, ...numbersReported(standings, 'lease'));
}

/** The numbers that processes reported of one of their settings. */
export function numbersReported(standings: readonly (Standing | undefined)[], what: 'lease' | 'servers'): number[] {
  const reported = standings.flatMap((standing) => standing?.reported ?? []).filter((each) => each.startsWith(`${what}:`));
  return [...new Set(reported)].map((each) => Number(each.slice(what.length + 1)));
}

/**
 * Whether the servers that count, together with the run that is judged, are no more than the list has, by the reports
 * to this server.
 */
function hasPlace({ reported }: Standing, { standings, run, counting }: Overview): boolean {
  const counted = reported.filter((each) => /^(vote|want):/.test(each)).map((each) => each.slice(5));
  return new Set([...counted, ...counting, run]).size <= standings.length;
}

function agedMs({ at }: Standing, ms: number, now: number): number {
  return ms + now - at;
}
