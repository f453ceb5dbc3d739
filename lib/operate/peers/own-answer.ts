import { hostname } from 'node:os';
import type { Acquisition } from '../../core/entering/acquisition.js';
import type { CallNode } from '../../core/calls/call-tree.js';
import { Frame } from '../../core/entering/frame.js';
import type { Lease } from '../../core/leases/lease.js';
import { VERSION } from '../../core/words/version.js';
import type { RollAnswer } from './roll-message.js';
import { namesOf } from './shape.js';
import type { HeldAt, LockProcess } from './survey.js';

/** How many locks, and how many calls that wait, a process lists at most. */
const MOST_ROWS = 1_000;
/** How many locks of a call that waits are listed at most. */
const MOST_HOLDS = 16;
/** How long a message may be, in characters; in UTF-8 at most three times as many bytes. */
const MOST_CHARACTERS = 60_000;

/** The facts that this process knows of the locks of one store, with the recorded calls and the incidents to tell. */
interface OwnState extends Pick<LockProcess, 'id' | 'upMs' | 'health'>, Pick<Rows, 'ended' | 'incidents'> {
  readonly expires: boolean;
  readonly leases: readonly Lease[];
  readonly waiting: readonly Acquisition[];
}

type Rows = Pick<RollAnswer, 'held' | 'waiting' | 'ended' | 'incidents'>;

/** The answer of this process to a roll, in as many messages as it takes. */
export function ownAnswer(id: string, state: OwnState): RollAnswer[] {
  const { expires, leases, waiting, ended, incidents } = state;
  const parts = split({
    held: leases.slice(0, MOST_ROWS).map((lease) => heldRow(lease, expires)),
    waiting: waiting.slice(0, MOST_ROWS).map(waitingRow),
    ended,
    incidents,
  });
  const process = {
    id: state.id,
    host: hostname(),
    pid: globalThis.process.pid,
    version: VERSION,
    upMs: Math.round(state.upMs),
    held: leases.length,
    waiting: waiting.length,
    health: state.health,
  };
  const leftOut = Math.max(0, leases.length - MOST_ROWS) + Math.max(0, waiting.length - MOST_ROWS);
  return parts.map((rows, part) =>
    Object.assign(rows, { kind: 'answer' as const, id, process, part, parts: parts.length, leftOut: part === 0 ? leftOut : 0 }),
  );
}

function heldRow({ key, caller, storedFence, fence, heldMs, remainingMs, shares }: Lease, expires: boolean): Rows['held'][number] {
  return {
    ...namesOf({ key, ...caller }),
    fence: storedFence,
    callFence: fence,
    heldMs: Math.round(heldMs),
    remainingMs: expires ? Math.max(0, Math.round(remainingMs)) : undefined,
    shares,
  };
}

function waitingRow(acquisition: Acquisition): Rows['waiting'][number] {
  const { call, waitedFor, waitId, waitedMs, leftMs } = acquisition;
  return {
    ...namesOf({ key: waitedFor ?? '', ...call.caller }),
    id: waitId,
    waitedMs: Math.round(waitedMs),
    leftMs: Math.max(0, Math.round(leftMs)),
    shares: call.shares,
    holds: heldBy(acquisition),
  };
}

/** The locks that a call holds while it waits: its own, and those of the calls and transactions around it. */
function heldBy({ frame }: Acquisition): HeldAt[] {
  const holds = new Set<Lease>();
  for (let at: CallNode | undefined = frame; at && holds.size < MOST_HOLDS; at = at.parent) {
    const leases = at instanceof Frame ? [...at.taken, ...(at.transaction?.kept ?? [])] : [];
    // The code of a call may go on after its lock.
    leases.filter(({ hasEnded }) => !hasEnded).forEach((lease) => holds.add(lease));
  }
  return [...holds].slice(0, MOST_HOLDS).map(({ key, storedFence: fence }) => ({ key, fence }));
}

const empty = (): { [Kind in keyof Rows]: Rows[Kind][number][] } => ({ held: [], waiting: [], ended: [], incidents: [] });

/** The rows in as many parts as their length asks for; at least one. */
function split(rows: Rows): Rows[] {
  const parts = [empty()];
  let characters = 0;
  for (const kind of ['held', 'waiting', 'incidents', 'ended'] as const) {
    for (const row of rows[kind]) {
      const { length } = JSON.stringify(row);
      if (characters + length > MOST_CHARACTERS && characters > 0) {
        parts.push(empty());
        characters = 0;
      }
      characters += length;
      ((parts.at(-1) as Rows)[kind] as unknown[]).push(row);
    }
  }
  return parts;
}
