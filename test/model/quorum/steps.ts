import { MOST_FENCES } from '../../../lib/core/seam/lock-store.js';
import { DONE_MS, MOST_FENCE } from '../../../lib/kit/protocol.js';
import { ABOUT_MS, MOST_AHEAD_US, PRESENT_MS, SLICE_MS } from '../../../lib/quorum/votes/vote-rules.js';
import type { Random } from '../../support/random.js';
import type { Report } from './server-record.js';
import type { Stored } from './stored.js';
import type { HoldRequest, VoteRequest } from './voting-server.js';

/** One server, or its specification. */
export interface Side {
  vote(request: VoteRequest): unknown;
  settle(owner: string, vote: string, fence: number, fences: number): unknown;
  join(hold: HoldRequest, process: string, latest: number): unknown;
  renew(hold: HoldRequest, lingers: boolean): unknown;
  release(vote: string, done: string, unanswered: boolean): unknown;
  forceRelease(request: string, fence: number, doneMs: number): unknown;
  inspect(): unknown;
  report(report: Report): unknown;
  setClock(us: number): unknown;
  setCounter(counter: number | undefined): unknown;
  /** It is empty, as after a restart. */
  forget(): unknown;
}

/** One command at a server, or what happens to the server. */
export type Step =
  | { readonly kind: 'vote'; readonly request: VoteRequest }
  | { readonly kind: 'settle'; readonly owner: string; readonly vote: string; readonly fence: number; readonly fences: number }
  | { readonly kind: 'join'; readonly hold: HoldRequest; readonly process: string; readonly latest: number }
  | { readonly kind: 'renew'; readonly hold: HoldRequest; readonly lingers: boolean }
  | { readonly kind: 'release'; readonly vote: string; readonly done: string; readonly unanswered: boolean }
  | { readonly kind: 'forceRelease'; readonly request: string; readonly fence: number; readonly doneMs: number }
  | { readonly kind: 'inspect' }
  | { readonly kind: 'report'; readonly report: Report }
  | { readonly kind: 'elapse'; readonly us: number }
  | { readonly kind: 'setCounter'; readonly counter: number | undefined }
  | { readonly kind: 'forget' };

const PROCESSES = ['ada', 'bob', 'cyd', 'dan'] as const;
const LEASES_MS = [300, 800, 2_000, 4_000] as const;
const KINDS: readonly Step['kind'][] = [
  ...Array.from({ length: 9 }, () => 'vote' as const),
  ...(['elapse', 'elapse', 'elapse', 'elapse', 'report', 'report', 'report'] as const),
  ...([
    'settle',
    'settle',
    'join',
    'join',
    'renew',
    'renew',
    'release',
    'release',
    'release',
    'forceRelease',
    'inspect',
    'setCounter',
  ] as const),
];

export function take(step: Step, side: Side): unknown {
  switch (step.kind) {
    case 'vote':
      return side.vote(step.request);
    case 'settle':
      return side.settle(step.owner, step.vote, step.fence, step.fences);
    case 'join':
      return side.join(step.hold, step.process, step.latest);
    case 'renew':
      return side.renew(step.hold, step.lingers);
    case 'release':
      return side.release(step.vote, step.done, step.unanswered);
    case 'forceRelease':
      return side.forceRelease(step.request, step.fence, step.doneMs);
    case 'inspect':
      return side.inspect();
    case 'report':
      return side.report(step.report);
    case 'elapse':
      return side.setClock(step.us);
    case 'setCounter':
      return side.setCounter(step.counter);
    case 'forget':
      return side.forget();
  }
}

/** A step that mostly has to do with what is stored, at a server whose clock reads `us`. */
export function nextStep(random: Random, count: number, stored: Stored, us: number): Step {
  const kind = random.chance(0.01) ? 'forget' : random.pick(KINDS);
  const { lock, counter = us } = stored;
  const ms = Math.floor(us / 1_000);
  const caller = callerOf(random, count);
  const owner = random.chance(0.8) ? (lock?.owner ?? caller.owner) : caller.owner;
  const vote = random.chance(0.8) ? (random.pick([...(lock?.holds ?? []), [caller.vote]])[0] as string) : caller.vote;
  const fence = (lock?.fence ?? counter) + (random.chance(0.8) ? 0 : random.whole(-2, 20));
  const ttlMs = random.pick(LEASES_MS);
  const latest = random.chance(0.7) ? 0 : ms + random.whole(-1, 1);
  const hold = { owner, fence, hold: vote, ttlMs };
  const fences = random.pick([1, 1, 2, MOST_FENCES]);
  switch (kind) {
    case 'vote':
      return { kind, request: { ...requestOf(random, caller, stored, us, ttlMs, latest), fences } };
    case 'settle':
      return { kind, owner, vote, fence: random.pick([fence, fence + 1, counter, counter + 1, counter + 500, counter - 500]), fences };
    case 'join':
      return { kind, hold: { ...hold, hold: random.chance(0.8) ? caller.hold : vote }, process: caller.process, latest };
    case 'renew':
      return { kind, hold, lingers: random.chance(0.3) };
    case 'release':
      // A hold that was granted is marked by its own name, and a vote that is withdrawn by its own.
      return { kind, vote, done: random.chance(0.5) ? vote : vote.replace(/\.\d+$/, ''), unanswered: random.chance(0.6) };
    case 'forceRelease':
      return { kind, request: `request ${count}`, fence, doneMs: DONE_MS };
    case 'report':
      return { kind, report: reportOf(random, counter) };
    case 'elapse':
      return { kind, us: us + elapsedUs(random, stored) };
    case 'setCounter':
      return { kind, counter: random.pick([undefined, us - 5_000, us + 700_000, us + 60_000_000, MOST_FENCE - 1, MOST_FENCE]) };
    default:
      return { kind };
  }
}

interface Caller {
  readonly owner: string;
  readonly hold: string;
  readonly attempt: number;
  readonly vote: string;
  readonly process: string;
}

/** A call of one of the processes, which makes several attempts; later ones have other names. */
function callerOf(random: Random, count: number): Caller {
  const process = random.pick(PROCESSES);
  const hold = `${process}-${Math.floor(count / 12) + random.whole(0, 1)}`;
  const attempt = random.chance(0.1) ? 0 : 1 + Math.floor(count / 6) + random.whole(0, 2);
  return { owner: `owner of ${hold}`, hold, attempt, vote: attempt === 0 ? hold : `${hold}.${attempt}`, process };
}

function requestOf(random: Random, caller: Caller, stored: Stored, us: number, ttlMs: number, latest: number): Omit<VoteRequest, 'fences'> {
  const { owner, hold, attempt, process } = caller;
  const ms = Math.floor(us / 1_000);
  const { waiters, counter = us } = stored;
  const { since } = random.pick([...Object.values(waiters?.waiting ?? {}), { since: ms }]);
  // About as long as one that waits, as much less as makes a difference, and anything.
  const waits = [0, ms - since + random.whole(-1, 1), ms - since - ABOUT_MS + random.whole(-1, 1), random.pick([1, 40, 60, 200, 600])];
  const proposals = [us, counter + 1, counter, counter - 1, us + random.pick([1, -1]) * random.pick([400, 500_000, 3_000_000])];
  return {
    owner,
    hold,
    attempt,
    process,
    ttlMs,
    by: `${process} at work`,
    proposed: random.pick([...proposals, us + MOST_AHEAD_US + random.whole(-1, 1)]),
    waitedMs: Math.max(0, random.pick(waits)),
    ageMs: random.pick([0, 0, 1, 60, 10_000]),
    latest,
  };
}

function reportOf(random: Random, counter: number): Report {
  const said = ['servers:3', 'servers:5', 'lease:60000', 'lease:2000', 'run:one', 'run:two', 'run:three'];
  return {
    run: random.pick(['one', 'one', 'one', 'one', 'two', 'three']),
    restarted: random.chance(0.15),
    counts: random.pick(['', '', 'again', 'first']),
    least: counter + random.pick([-1_000, -1, 0, 1, 1_000]),
    said: said.flatMap((what) => (random.chance(0.3) ? [[what, random.pick([-20, 50, 400, 3_000, 20_000])] as const] : [])),
  };
}

/** Mostly until something ends, or shortly before, or after; or the clock is set back. */
function elapsedUs(random: Random, { lock, waiters, done }: Stored): number {
  const ends = [...Object.values(done), ...(lock ? [lock] : []), ...(waiters ? [waiters] : [])].map(({ leftMs }) => leftMs);
  const near = random.pick([...ends, SLICE_MS, ABOUT_MS, PRESENT_MS, SLICE_MS / 2]) + random.whole(-1, 1);
  const ms = random.pick([near, near, random.whole(0, 30), random.whole(0, 300), random.pick([-5, -40, -1_000, -1_001, -2_500])]);
  return ms * 1_000 + random.whole(0, 999);
}
