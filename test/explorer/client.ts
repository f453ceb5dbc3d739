import { RECHECK_MS } from '../../lib/kit/protocol.js';
import { placeEnd } from '../../lib/core/seam/shares.js';
import { LIMIT_MS, STEP_MS, TTL_MS, type Flaw } from './scope.js';
import {
  isTrusted,
  trustedUntil,
  ttlOf,
  type Call,
  type Lease,
  type Line,
  type Process,
  type Release,
  type State,
  type Transit,
} from './state.js';
import { Violation } from './violation.js';

/** How many calls of a process have a lock one after the other while others queue; core has 16. */
const MOST_SERVED = 3;
/** For how long after its sender gave up a command may be carried out. */
const LATEST_MS = 1_000;

/**
 * One process: it does as core does, as far as a store can tell. Each method is one step, and changes the state that it
 * was made for.
 */
export class Client {
  readonly #state: State;
  readonly #number: number;
  readonly #process: Process;
  readonly #keys: readonly string[];
  readonly #flaw: Flaw | undefined;

  constructor(state: State, number: number, keys: readonly string[], flaw?: Flaw) {
    this.#state = state;
    this.#number = number;
    this.#process = state.processes[number] as Process;
    this.#keys = keys;
    this.#flaw = flaw;
  }

  /** A call begins; `ticket`: the lease of another process, whose lock it enters. */
  begin(at: number, ticket?: Lease): void {
    const call = this.#process.calls[at] as Call;
    call.stage = 'entering';
    for (const key of this.#keys) {
      call.leases.push({
        key,
        stage: 'wanted',
        owner: ticket?.owner ?? this.#newName('o', at, key),
        hold: '',
        shares: ticket ? ticket.shares : this.#process.shares,
        joins: ticket?.stored ?? 0,
        isUnknown: false,
        unanswered: false,
        fences: 0,
        fence: 0,
        stored: ticket?.stored ?? 0,
        sentAt: 0,
        at: 0,
        renewal: { isSent: false, at: Infinity },
        epoch: 0,
      });
    }
    this.#want(at, call.leases[0] as Lease);
  }

  /** The caller gives up. */
  giveUp(at: number): void {
    const call = this.#process.calls[at] as Call;
    call.gaveUp = true;
    const lease = call.leases.find(({ stage }) => stage === 'line' || stage === 'paused');
    if (lease) {
      this.#refuse(at, lease);
    }
  }

  /** The code of a call ends. */
  end(at: number): void {
    const call = this.#process.calls[at] as Call;
    call.stage = 'over';
    call.leases.forEach((lease) => this.#leave(at, lease));
  }

  /** A command was answered. */
  answered(reply: Transit): void {
    const { kind, hold, sentAt, answer } = reply;
    if (kind === 'renew') {
      const lease = this.#leases().find((one) => one.hold === hold && one.stage === 'held');
      if (lease?.renewal.isSent && lease.renewal.at === sentAt) {
        this.#renewed(lease, reply);
      }
      return;
    }
    if (kind === 'release' || kind === 'exchange') {
      const found = this.#process.releases.findIndex((one) => one.hold === hold && one.sentAt === sentAt);
      const release = this.#process.releases[found];
      if (release) {
        this.#process.releases.splice(found, 1);
        this.#releaseAnswered(release, answer?.released === true);
      }
    }
    const wanted = kind === 'exchange' ? (reply.next?.hold ?? '') : hold;
    const [at, lease] = this.#find((one) => one.hold === wanted && one.stage === 'asking' && one.at === sentAt);
    if (lease) {
      this.#attempted(at, lease, reply);
    }
  }

  /** A message has come. */
  notified({ kind, key, place, fence }: Transit): void {
    if (kind === 'forced') {
      this.#process.calls.forEach((call, at) =>
        call.leases.filter((one) => one.key === key && one.stage === 'held' && one.stored === fence).forEach((one) => this.#lose(at, one)),
      );
      return;
    }
    const line = this.#line(key);
    if (line.place !== place) {
      this.#send({ kind: 'leave', key, place });
      return;
    }
    line.isNotified = true;
    const lease = this.#process.calls[line.current]?.leases.find((one) => one.key === key);
    if (lease?.stage === 'paused') {
      this.#ask(line.current, lease);
    }
  }

  /** The timers that are due, each as a step. */
  due(): { readonly what: string; readonly run: () => void }[] {
    const { now } = this.#state;
    const steps: { what: string; run: () => void }[] = [];
    this.#process.calls.forEach((call, at) =>
      call.leases.forEach((lease) => {
        const { key, stage, renewal } = lease;
        if (stage === 'asking' && now >= lease.at + LIMIT_MS) {
          steps.push({ what: `stops waiting for the answer to ${lease.hold}`, run: () => this.#timedOut(at, lease) });
        } else if (stage === 'paused' && now >= lease.at) {
          steps.push({ what: `asks again for ${key}`, run: () => this.#ask(at, lease) });
        } else if (stage === 'held' && !isTrusted(lease, now)) {
          steps.push({ what: `loses ${lease.hold}, whose time is over`, run: () => this.#lose(at, lease) });
        } else if (stage === 'held' && renewal.isSent && now >= renewal.at + LIMIT_MS) {
          steps.push({ what: `stops waiting for the renewal of ${lease.hold}`, run: () => (lease.renewal = { isSent: false, at: now }) });
        } else if (stage === 'held' && !renewal.isSent && now >= renewal.at) {
          steps.push({ what: `renews ${lease.hold}`, run: () => this.#renew(lease) });
        }
      }),
    );
    for (const release of this.#process.releases) {
      if (now >= release.sentAt + LIMIT_MS) {
        steps.push({ what: `repeats the release of ${release.hold}`, run: () => this.#repeat(release) });
      }
    }
    return steps;
  }

  #want(at: number, lease: Lease): void {
    const line = this.#line(lease.key);
    if (line.current >= 0 && lease.joins === 0) {
      lease.stage = 'line';
      return;
    }
    if (lease.joins === 0) {
      line.current = at;
    }
    this.#ask(at, lease);
  }

  #ask(at: number, lease: Lease): void {
    const line = this.#line(lease.key);
    lease.hold ||= this.#newName('h', at, lease.key);
    if (lease.joins === 0) {
      line.place ||= `${this.#newName('q', at, lease.key)}${placeEnd(lease.shares)}`;
      line.isNotified = false;
      line.burst = 1;
      lease.fences ||= lease.shares === undefined ? 1 + this.#inLine(lease.key).length : 1;
    }
    lease.stage = 'asking';
    lease.at = this.#state.now;
    const { key, hold, owner, shares, fences, joins } = lease;
    const kind = joins > 0 ? 'join' : 'acquire';
    this.#send({
      kind,
      key,
      hold,
      owner,
      shares,
      fence: joins,
      fences: Math.max(1, fences),
      ttlMs: ttlOf(lease),
      place: joins > 0 ? '' : line.place,
    });
  }

  #attempted(at: number, lease: Lease, { answer, sentAt, kind }: Transit): void {
    const call = this.#process.calls[at] as Call;
    const line = this.#line(lease.key);
    if (answer?.held) {
      if (kind !== 'join') {
        line.place = '';
        line.isNotified = false;
      }
      lease.isUnknown = false;
      if (call.gaveUp || this.#state.now >= trustedUntil({ ...lease, sentAt })) {
        this.#abandon(lease);
        lease.hold = '';
        lease.unanswered = false;
        lease.fences = 0;
        this.#pause(at, lease, STEP_MS);
      } else {
        this.#granted(at, lease, answer.fence, answer.fence, sentAt, answer.epoch);
      }
    } else if (kind === 'join' || answer?.refused) {
      this.#refuse(at, lease);
    } else {
      const { rank = -1, remainingMs = 0 } = answer ?? {};
      this.#pause(at, lease, Math.min(rank < 2 ? RECHECK_MS.soon : RECHECK_MS.late, remainingMs + 1));
    }
  }

  #timedOut(at: number, lease: Lease): void {
    const { key, joins } = lease;
    const came = this.#process.releases.some((release) => release.key === key && release.sentAt === lease.at) ? 'exchange' : 'acquire';
    lease.isUnknown = true;
    lease.unanswered ||= this.#flaw !== `counts a lost ${joins > 0 ? 'join' : came} as answered`;
    this.#pause(at, lease, STEP_MS);
  }

  #pause(at: number, lease: Lease, ms: number): void {
    if (this.#process.calls[at]?.gaveUp) {
      this.#refuse(at, lease);
      return;
    }
    lease.stage = 'paused';
    lease.at = this.#state.now + Math.ceil(ms / STEP_MS) * STEP_MS;
    if (this.#line(lease.key).isNotified) {
      this.#ask(at, lease);
    }
  }

  #granted(at: number, lease: Lease, fence: number, stored: number, sentAt: number, epoch: number): void {
    const call = this.#process.calls[at] as Call;
    const renewal = { isSent: false, at: renewalAt(lease, sentAt) };
    Object.assign(lease, { stage: 'held', fence, stored, sentAt, epoch, renewal });
    if (lease.shares !== undefined && lease.joins === 0) {
      this.#endTurn(lease.key);
    }
    if (call.leases.some((one) => one.stage === 'ended' || (one.stage === 'held' && !isTrusted(one, this.#state.now)))) {
      call.leases.forEach((one) => this.#startOver(at, one));
      this.#want(at, call.leases[0] as Lease);
      return;
    }
    const next = call.leases.find(({ stage }) => stage === 'wanted');
    if (next) {
      this.#want(at, next);
    } else {
      call.stage = 'running';
    }
  }

  /** One lock was lost while the call waited for the next: it takes all of them anew, as another owner. */
  #startOver(at: number, lease: Lease): void {
    if (lease.stage === 'held') {
      this.#abandon(lease);
      if (holdsLine(lease)) {
        this.#endTurn(lease.key);
      }
    }
    Object.assign(lease, {
      stage: 'wanted',
      owner: this.#newName('o', at, lease.key),
      hold: '',
      unanswered: false,
      fences: 0,
      fence: 0,
      stored: 0,
    });
  }

  /** The call waits no longer: what it may have got is released. */
  #refuse(at: number, lease: Lease): void {
    const call = this.#process.calls[at] as Call;
    const wasInLine = lease.stage === 'line';
    if (lease.isUnknown) {
      this.#abandon(lease);
    }
    lease.stage = 'ended';
    if (!wasInLine && lease.joins === 0) {
      this.#endTurn(lease.key);
    }
    call.stage = 'over';
    call.leases.forEach((one) => this.#leave(at, one));
  }

  /** The code has left a lock: it serves the next call here, is exchanged for that one, or released. */
  #leave(at: number, lease: Lease): void {
    const { now, epoch } = this.#state;
    if (lease.stage !== 'held') {
      lease.stage = lease.stage === 'wanted' ? 'ended' : lease.stage;
      return;
    }
    if (!isTrusted(lease, now) && this.#flaw !== 'releases a lease that is over') {
      this.#lose(at, lease);
      return;
    }
    const line = this.#line(lease.key);
    const [next] = this.#inLine(lease.key);
    if (next && holdsLine(lease) && line.burst < MOST_SERVED && this.#canServe(lease)) {
      line.burst++;
      line.current = next.at;
      Object.assign(next.lease, { owner: lease.owner, hold: lease.hold, unanswered: lease.unanswered, fences: lease.fences });
      lease.stage = 'ended';
      this.#granted(next.at, next.lease, lease.fence + 1, lease.stored, lease.sentAt, lease.epoch);
      return;
    }
    const trust = { trustedUntil: trustedUntil(lease), epoch: lease.epoch === epoch ? epoch : -1 };
    const release = { ...this.#newRelease(lease), ...trust };
    this.#process.releases.push(release);
    if (next && holdsLine(lease)) {
      this.#exchange(release, lease, next.at, next.lease, line);
      return;
    }
    lease.stage = 'releasing';
    this.#sendRelease(release);
  }

  #exchange({ unanswered }: Release, lease: Lease, at: number, next: Lease, line: Line): void {
    const mayOvertake = line.burst < MOST_SERVED;
    line.place = this.#newName('q', at, lease.key);
    line.isNotified = false;
    line.burst = mayOvertake ? line.burst + 1 : 1;
    line.current = at;
    lease.stage = 'ended';
    next.hold = this.#newName('h', at, lease.key);
    next.unanswered = false;
    next.fences = 1 + this.#inLine(lease.key).length - 1;
    next.stage = 'asking';
    next.at = this.#state.now;
    const { key, hold, owner } = lease;
    this.#send({
      kind: 'exchange',
      key,
      hold,
      owner,
      unanswered,
      fences: Math.max(1, next.fences),
      place: line.place,
      next: { hold: next.hold, owner: next.owner, mayOvertake },
    });
  }

  #canServe(lease: Lease): boolean {
    return lease.fence + 1 < lease.stored + lease.fences && trustedUntil(lease) - this.#state.now > TTL_MS / 2;
  }

  #renew(lease: Lease): void {
    const { key, hold, owner, shares, stored } = lease;
    lease.renewal = { isSent: true, at: this.#state.now };
    this.#send({ kind: 'renew', key, hold, owner, shares, fence: stored, ttlMs: ttlOf(lease) });
  }

  #renewed(lease: Lease, { answer, sentAt }: Transit): void {
    const at = this.#process.calls.findIndex(({ leases }) => leases.includes(lease));
    if (!answer?.held || !isTrusted(lease, this.#state.now)) {
      this.#lose(at, lease);
      return;
    }
    lease.sentAt = sentAt;
    lease.epoch = answer.epoch;
    lease.renewal = { isSent: false, at: renewalAt(lease, sentAt) };
  }

  /** The code is told, and a release is sent in case the lock lives. */
  #lose(at: number, lease: Lease): void {
    const call = this.#process.calls[at] as Call;
    this.#abandon(lease);
    lease.stage = 'ended';
    if (holdsLine(lease)) {
      this.#endTurn(lease.key);
    }
    if (call.stage === 'running') {
      call.stage = 'over';
      call.leases.forEach((one) => this.#leave(at, one));
    }
  }

  #abandon(lease: Lease): void {
    const release = this.#newRelease(lease);
    this.#process.releases.push(release);
    this.#sendRelease(release);
  }

  #newRelease({ key, hold, owner, shares, unanswered }: Lease): Release {
    const { now } = this.#state;
    const isMarked = (unanswered && this.#flaw !== 'leaves no mark') || this.#process.sendsAgain;
    const times = { firstSentAt: now, sentAt: now, until: now + TTL_MS + LATEST_MS, trustedUntil: 0 };
    return { key, hold, owner, shares, unanswered: isMarked, ...times, epoch: -1 };
  }

  #sendRelease({ key, hold, owner, shares, unanswered }: Release): void {
    this.#send({ kind: 'release', key, hold, owner, shares, unanswered });
  }

  #repeat(release: Release): void {
    const { now } = this.#state;
    this.#turnEnded(release.hold);
    if (now >= release.until) {
      this.#process.releases.splice(this.#process.releases.indexOf(release), 1);
      return;
    }
    release.sentAt = now;
    release.unanswered = this.#flaw !== 'repeats a release without its mark';
    this.#sendRelease(release);
  }

  /** Where the first release got no answer, the call has ended as released. */
  #releaseAnswered({ hold, trustedUntil: until, firstSentAt, sentAt, epoch }: Release, released: boolean): void {
    const isFirst = sentAt === firstSentAt;
    if (isFirst && !released && until > this.#state.now && epoch === this.#state.epoch) {
      throw new Violation(`the release of ${hold}, which was held, was answered as if it had not been`);
    }
    if (until > 0 && until <= firstSentAt && (released || !isFirst)) {
      throw new Violation(`${hold} counts as released, and its lease was over when its first release left`);
    }
    this.#turnEnded(hold);
  }

  /** The release of the call before is answered, or was waited for long enough: the next in line contends. */
  #turnEnded(hold: string): void {
    const [, lease] = this.#find((one) => one.hold === hold && one.stage === 'releasing');
    if (lease) {
      lease.stage = 'ended';
      if (holdsLine(lease)) {
        this.#endTurn(lease.key);
      }
    }
  }

  #endTurn(key: string): void {
    const line = this.#line(key);
    const [next] = this.#inLine(key);
    line.current = -1;
    if (next) {
      line.current = next.at;
      this.#ask(next.at, next.lease);
    } else if (line.place !== '') {
      this.#send({ kind: 'leave', key, place: line.place });
      line.place = '';
      line.isNotified = false;
    }
  }

  #inLine(key: string): { readonly at: number; readonly lease: Lease }[] {
    return this.#process.calls.flatMap(({ leases }, at) =>
      leases.filter((lease) => lease.key === key && lease.stage === 'line').map((lease) => ({ at, lease })),
    );
  }

  #leases(): Lease[] {
    return this.#process.calls.flatMap(({ leases }) => leases);
  }

  #find(is: (lease: Lease) => boolean): readonly [at: number, lease: Lease | undefined] {
    for (const [at, { leases }] of this.#process.calls.entries()) {
      const lease = leases.find(is);
      if (lease) {
        return [at, lease];
      }
    }
    return [-1, undefined];
  }

  #line(key: string): Line {
    return this.#process.lines[this.#keys.indexOf(key)] as Line;
  }

  #newName(kind: string, at: number, key: string): string {
    return `${kind}${this.#number}${at}${key}${this.#line(key).names++}`;
  }

  #send(command: Pick<Transit, 'kind' | 'key'> & Partial<Transit>): void {
    const { now, aheadMs } = this.#state;
    const base = {
      hold: '',
      owner: '',
      place: '',
      fence: 0,
      fences: 1,
      ttlMs: TTL_MS,
      unanswered: false,
      sentAt: now,
      latest: now + aheadMs + LIMIT_MS,
      isLate: false,
      isCopy: false,
    };
    this.#state.transits.push({ ...base, ...command, phase: 'command', process: this.#number });
  }
}

/** Whether the next call of its process waits until a held lease ends: one that shares its key holds no line. */
function holdsLine({ joins, shares }: Lease): boolean {
  return joins === 0 && shares === undefined;
}

/** When two thirds of the lease are left, in whole steps. */
function renewalAt(lease: Lease, sentAt: number): number {
  return sentAt + STEP_MS * Math.floor(ttlOf(lease) / 3 / STEP_MS);
}
